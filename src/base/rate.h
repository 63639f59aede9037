// Rate: a data rate in whole bits per second.
#pragma once

#include <compare>
#include <limits>

#include "base/time.h"

namespace verbena {

class Rate {
 public:
  // time_of() accepts at most so many bytes: a packet, or a burst of packets.
  static constexpr u64 kMaxBytes = 2'000'000;

  constexpr Rate() = default;
  static constexpr Rate from_bps(u64 v) { return Rate(v); }
  static constexpr Rate unlimited() { return Rate(std::numeric_limits<u64>::max()); }
  constexpr u64 bps() const { return bps_; }
  // Returns the time that `bytes` bytes take, rounded down to picoseconds. Precondition: the rate
  // is not 0.
  constexpr Duration time_of(u64 bytes) const {
    constexpr u64 kBitPicoseconds = 8 * 1'000'000'000'000;
    return Duration::from_ps(static_cast<i64>(bytes * kBitPicoseconds / bps_));
  }
  friend constexpr auto operator<=>(Rate, Rate) = default;

 private:
  constexpr explicit Rate(u64 v) : bps_(v) {}
  u64 bps_ = 0;
};

constexpr Rate kbps(u64 n) { return Rate::from_bps(n * 1'000); }
constexpr Rate mbps(u64 n) { return Rate::from_bps(n * 1'000'000); }
constexpr Rate gbps(u64 n) { return Rate::from_bps(n * 1'000'000'000); }

}  // namespace verbena
