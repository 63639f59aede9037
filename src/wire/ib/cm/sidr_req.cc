#include "wire/ib/cm/sidr_req.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<SIDRREQ> SIDRREQ::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return SIDRREQ{.request_id = CommId{r.get32<0>()},
                 .p_key = PKey{r.get16<4>()},
                 .service_id = ServiceId{r.get64<8>()},
                 .private_data = get_bytes<16, kPrivateDataSize>(bytes)};
}

void SIDRREQ::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(request_id.value);
  w.put16<4>(p_key.value);
  w.put16<6>(0);
  w.put64<8>(service_id.value);
  put_bytes<16>(out, private_data);
}

}  // namespace verbena::cm
