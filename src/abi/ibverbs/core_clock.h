// The clock that completions are stamped by: hca_core_clock of ibv_query_device_ex(3). Its ticks
// are the nanoseconds of the device's time, all 64 bits of them; ibv_query_rt_values_ex(3) reads
// it.
#pragma once

#include "base/time.h"

namespace verbena::abi {

inline constexpr u64 kCoreClockKHz = 1'000'000;
inline constexpr u64 kTimestampMask = ~u64{0};

constexpr u64 ticks_of(Time t) { return static_cast<u64>(t.ns()); }

}  // namespace verbena::abi
