// Each look at a source of packets costs a system call: one that gave nothing for kQuietAfter looks
// is quiet, and then only looked at each kLookInterval rounds.
#pragma once

#include "base/types.h"

namespace verbena::host {

inline constexpr u32 kQuietAfter = 64;
inline constexpr u32 kLookInterval = 16;

}  // namespace verbena::host
