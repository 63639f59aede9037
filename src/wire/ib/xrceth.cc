#include "wire/ib/xrceth.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {

std::optional<XRCETH> XRCETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  return XRCETH{.xrc_srq = load_be24(in.data() + 1)};
}

void XRCETH::encode(std::span<u8, kSize> out) const {
  CHECK(xrc_srq <= kMask24);
  store_be32(out.data(), xrc_srq);
}

}  // namespace verbena
