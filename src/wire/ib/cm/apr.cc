#include "wire/ib/cm/apr.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<APR> APR::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return APR{.local_comm_id = CommId{r.get32<0>()},
             .remote_comm_id = CommId{r.get32<4>()},
             .info_length = r.get8<8>(),
             .status = APRStatus{r.get8<9>()},
             .info = get_bytes<12, kInfoSize>(bytes),
             .private_data = get_bytes<84, kPrivateDataSize>(bytes)};
}

void APR::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(local_comm_id.value);
  w.put32<4>(remote_comm_id.value);
  w.put8<8>(info_length);
  w.put8<9>(static_cast<u8>(status));
  w.put16<10>(0);
  put_bytes<12>(out, info);
  put_bytes<84>(out, private_data);
}

}  // namespace verbena::cm
