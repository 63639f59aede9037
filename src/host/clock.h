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

inline timespec to_timespec(Time t) {
  return {.tv_sec = t.ns() / 1'000'000'000, .tv_nsec = t.ns() % 1'000'000'000};
}

}  // namespace verbena::host
