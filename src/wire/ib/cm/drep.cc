#include "wire/ib/cm/drep.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<DREP> DREP::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return DREP{.local_comm_id = CommId{r.get32<0>()},
              .remote_comm_id = CommId{r.get32<4>()},
              .private_data = get_bytes<8, kPrivateDataSize>(bytes)};
}

void DREP::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(local_comm_id.value);
  w.put32<4>(remote_comm_id.value);
  put_bytes<8>(out, private_data);
}

}  // namespace verbena::cm
