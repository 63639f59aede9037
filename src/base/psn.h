// PSN and MSN: Packet and Message Sequence Numbers, 24 bits, circular. IBTA Vol 1, 9.7.1,
// 9.7.5.1.2.
// Ordering exists only within half the circle (2^23), so there is no operator<.
#pragma once

#include "base/types.h"

namespace verbena {

template <typename Tag>
class Sequence24 {
 public:
  static constexpr u32 kModulus = 1u << 24;
  static constexpr u32 kHalf = 1u << 23;  // the PSN window of IBTA 9.7.1: valid | duplicate

  constexpr Sequence24() = default;
  constexpr explicit Sequence24(u32 v) : value_(v & kMask24) {}

  constexpr u32 value() const { return value_; }
  constexpr Sequence24 next() const { return advanced(1); }
  constexpr Sequence24 previous() const { return Sequence24(value_ - 1); }
  constexpr Sequence24 advanced(u32 n) const { return Sequence24(value_ + n); }
  // Returns the number of steps forward from here to `later`, 0 .. 2^24 - 1.
  constexpr u32 distance_to(Sequence24 later) const { return (later.value_ - value_) & kMask24; }
  // Returns true if `other` is 1 .. 2^23 - 1 steps ahead.
  constexpr bool before(Sequence24 other) const {
    const u32 d = distance_to(other);
    return d != 0 && d < kHalf;
  }
  constexpr bool before_or_equal(Sequence24 other) const { return distance_to(other) < kHalf; }
  friend constexpr bool operator==(Sequence24, Sequence24) = default;

 private:
  u32 value_ = 0;
};

using PSN = Sequence24<struct PSNTag>;
using MSN = Sequence24<struct MSNTag>;

}  // namespace verbena
