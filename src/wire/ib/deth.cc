#include "wire/ib/deth.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {

std::optional<DETH> DETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  return DETH{.q_key = QKey{r.get32<0>()}, .source_qp = QPN{r.get24<5>()}};
}

void DETH::encode(std::span<u8, kSize> out) const {
  CHECK(source_qp.value <= kMask24);
  Writer<kSize> w(out);
  w.put32<0>(q_key.value);
  w.put32<4>(source_qp.value);
}

}  // namespace verbena
