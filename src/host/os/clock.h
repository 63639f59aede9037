// The live driver's clock: CLOCK_MONOTONIC, which never goes back.
#pragma once

#include <time.h>

#include "base/time.h"

namespace verbena::host {

inline Time monotonic_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time::from_ns(i64{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

// When that was by the clock on the wall, as far as the two clocks agree now.
// In nanoseconds since 1970: a Time of that would overflow.
inline i64 wallclock_ns_of(Time monotonic) {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const i64 wall_ns = i64{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec;
  return wall_ns - monotonic_now().ns() + monotonic.ns();
}

inline timespec to_timespec(Time t) {
  return {.tv_sec = t.ns() / 1'000'000'000, .tv_nsec = t.ns() % 1'000'000'000};
}

inline void sleep_for(Duration pause) {
  const timespec time = to_timespec(Time() + pause);
  nanosleep(&time, nullptr);
}

}  // namespace verbena::host
