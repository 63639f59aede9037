#include "wire/ib/cm/sidr_rep.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<SIDRREP> SIDRREP::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return SIDRREP{.request_id = CommId{r.get32<0>()},
                 .status = SIDRStatus{r.get8<4>()},
                 .info_length = r.get8<5>(),
                 .qpn = QPN{r.get24<8>()},
                 .service_id = ServiceId{r.get64<12>()},
                 .q_key = QKey{r.get32<20>()},
                 .info = get_bytes<24, kInfoSize>(bytes),
                 .private_data = get_bytes<96, kPrivateDataSize>(bytes)};
}

void SIDRREP::encode(std::span<u8, kSize> out) const {
  CHECK(qpn.value <= kMask24);
  Writer<kSize> w(out);
  w.put32<0>(request_id.value);
  w.put8<4>(static_cast<u8>(status));
  w.put8<5>(info_length);
  w.put16<6>(0);
  w.put32<8>(qpn.value << 8);
  w.put64<12>(service_id.value);
  w.put32<20>(q_key.value);
  put_bytes<24>(out, info);
  put_bytes<96>(out, private_data);
}

}  // namespace verbena::cm
