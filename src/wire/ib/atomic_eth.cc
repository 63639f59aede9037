#include "wire/ib/atomic_eth.h"

#include "base/bytes.h"

namespace verbena {

std::optional<AtomicETH> AtomicETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return AtomicETH{.virtual_address = r.get64<0>(),
                   .r_key = RKey{r.get32<8>()},
                   .swap_or_add = r.get64<12>(),
                   .compare = r.get64<20>()};
}

void AtomicETH::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put64<0>(virtual_address);
  w.put32<8>(r_key.value);
  w.put64<12>(swap_or_add);
  w.put64<20>(compare);
}

std::optional<AtomicAckETH> AtomicAckETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  return AtomicAckETH{.original_data = load_be64(in.data())};
}

void AtomicAckETH::encode(std::span<u8, kSize> out) const { store_be64(out.data(), original_data); }

}  // namespace verbena
