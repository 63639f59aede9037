#include "wire/ib/cm/rej.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<REJ> REJ::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return REJ{.local_comm_id = CommId{r.get32<0>()},
             .remote_comm_id = CommId{r.get32<4>()},
             .message_rejected = Answered{get_bits(r.get8<8>(), 6, 2)},
             .reject_info_length = get_bits(r.get8<9>(), 1, 7),
             .reason = RejectReason{r.get16<10>()},
             .ari = get_bytes<12, kARISize>(bytes),
             .private_data = get_bytes<84, kPrivateDataSize>(bytes)};
}

void REJ::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put32<0>(local_comm_id.value);
  w.put32<4>(remote_comm_id.value);
  w.put8<8>(put_bits(static_cast<u8>(message_rejected), 6, 2));
  w.put8<9>(put_bits(reject_info_length, 1, 7));
  w.put16<10>(static_cast<u16>(reason));
  put_bytes<12>(out, ari);
  put_bytes<84>(out, private_data);
}

}  // namespace verbena::cm
