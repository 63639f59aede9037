#include "wire/ib/feth.h"

#include "base/bytes.h"

namespace verbena {
namespace {

constexpr u32 kGlobal = 1u << 0;
constexpr u32 kPersistent = 1u << 1;
constexpr int kSelectivityShift = 4;
constexpr u32 kSelectivityMask = 3;

}  // namespace

std::optional<FETH> FETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const u32 bits = load_be32(in.data());
  return FETH{
      .global = (bits & kGlobal) != 0,
      .persistent = (bits & kPersistent) != 0,
      .selectivity = static_cast<FlushSelectivity>(bits >> kSelectivityShift & kSelectivityMask)};
}

void FETH::encode(std::span<u8, kSize> out) const {
  store_be32(out.data(), (global ? kGlobal : 0) | (persistent ? kPersistent : 0) |
                             (static_cast<u32>(selectivity) & kSelectivityMask)
                                 << kSelectivityShift);
}

}  // namespace verbena
