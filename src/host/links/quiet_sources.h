// Each look at a source of packets costs a system call: one that gave nothing for kQuietAfter looks
// is quiet, and then only looked at now and then: each kLookInterval rounds at one of those, as who
// waits for a packet waits for all looks at others.
#pragma once

#include "base/types.h"

namespace verbena::host {

inline constexpr u32 kQuietAfter = 64;
inline constexpr u32 kLookInterval = 16;

}  // namespace verbena::host
