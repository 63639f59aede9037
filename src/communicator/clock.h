// Times are nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include <algorithm>

#include "base/types.h"

namespace verbena::coll {

inline constexpr i64 kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;

[[nodiscard]] i64 now_ns();
// Timeouts of programs may be infinite: some 30 years are long enough, and fit.
[[nodiscard]] constexpr i64 after(i64 now, double seconds) {
  constexpr double kLongest = 1e9;  // seconds
  return now + static_cast<i64>(std::min(seconds, kLongest) * 1e9);
}

}  // namespace verbena::coll
