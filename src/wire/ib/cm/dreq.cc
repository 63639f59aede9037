#include "wire/ib/cm/dreq.h"

#include "base/bytes.h"

namespace verbena::cm {

std::optional<DREQ> DREQ::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const std::span<const u8, kSize> bytes = in.first<kSize>();
  const Reader<kSize> r(bytes);
  return DREQ{.local_comm_id = CommId{r.get32<0>()},
              .remote_comm_id = CommId{r.get32<4>()},
              .remote_qpn = QPN{r.get24<8>()},
              .private_data = get_bytes<12, kPrivateDataSize>(bytes)};
}

void DREQ::encode(std::span<u8, kSize> out) const {
  CHECK(remote_qpn.value <= kMask24);
  Writer<kSize> w(out);
  w.put32<0>(local_comm_id.value);
  w.put32<4>(remote_comm_id.value);
  w.put32<8>(remote_qpn.value << 8);
  put_bytes<12>(out, private_data);
}

}  // namespace verbena::cm
