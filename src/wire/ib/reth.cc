#include "wire/ib/reth.h"

#include "base/bytes.h"

namespace verbena {

std::optional<RETH> RETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return RETH{
      .virtual_address = r.get64<0>(), .r_key = RKey{r.get32<8>()}, .dma_length = r.get32<12>()};
}

void RETH::encode(std::span<u8, kSize> out) const {
  Writer<kSize> w(out);
  w.put64<0>(virtual_address);
  w.put32<8>(r_key.value);
  w.put32<12>(dma_length);
}

}  // namespace verbena
