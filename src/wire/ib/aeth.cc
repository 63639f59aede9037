#include "wire/ib/aeth.h"

#include "base/bytes.h"
#include "base/check.h"

namespace verbena {
namespace {

constexpr u8 kReservedBit = 0x80;
constexpr int kKindShift = 5;
constexpr u8 kKindMask = 0x3;
constexpr u8 kValueMask = 0x1f;

}  // namespace

std::optional<AETH> AETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const Reader<kSize> r(in.first<kSize>());
  const u8 syndrome = r.get8<0>();
  if ((syndrome & kReservedBit) != 0) return std::nullopt;
  return AETH{.kind = static_cast<AETHKind>((syndrome >> kKindShift) & kKindMask),
              .value = static_cast<u8>(syndrome & kValueMask),
              .msn = MSN{r.get24<1>()}};
}

void AETH::encode(std::span<u8, kSize> out) const {
  CHECK(value <= kValueMask);
  Writer<kSize> w(out);
  w.put8<0>(static_cast<u8>((static_cast<u8>(kind) << kKindShift) | value));
  w.put24<1>(msn.value());
}

}  // namespace verbena
