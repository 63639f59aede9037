#include "wire/ib/cm/mra.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<MRA> MRA::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return MRA{.local_comm_id = CommId{r.get32<0>()},
             .remote_comm_id = CommId{r.get32<4>()},
             .message_mraed = Answered{get_bits(r.get8<8>(), 6, 2)},
             .service_timeout = get_bits(r.get8<9>(), 3, 5),
             .private_data = get_bytes<10, kPrivateDataSize>(bytes)};
}

void MRA::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(local_comm_id.value);
  w.put32<4>(remote_comm_id.value);
  w.put8<8>(put_bits(static_cast<u8>(message_mraed), 6, 2));
  w.put8<9>(put_bits(service_timeout, 3, 5));
  put_bytes<10>(out, private_data);
}

}  // namespace verbena::cm
