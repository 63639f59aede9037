// When the clocks of tests begin: away from 0, where a time of before would be negative.
#pragma once

#include "base/time.h"

namespace verbena::test {

inline constexpr Time kStart = Time::from_ns(1'000'000);

}  // namespace verbena::test
