// Times are nanoseconds of CLOCK_MONOTONIC.
#pragma once

#include "base/types.h"

namespace verbena::coll {

inline constexpr i64 kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;

[[nodiscard]] i64 now_ns();
[[nodiscard]] constexpr i64 after(i64 now, double seconds) {
  return now + static_cast<i64>(seconds * 1e9);
}

}  // namespace verbena::coll
