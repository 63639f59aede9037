// Copies of memory. A long one passes the caches by (non-temporal stores): a plain copy reads each
// line of its target before it writes it.
#pragma once

#include <cstring>

#include "base/types.h"

namespace verbena::coll {

inline constexpr u64 kLongCopy = 4u << 20;

void copy_past_caches(u8* to, const u8* from, u64 bytes);

// The ranges are the same, or do not overlap.
inline void copy_bytes(void* to, const void* from, u64 bytes) {
  if (to == from || bytes == 0) return;
  if (bytes < kLongCopy)
    std::memcpy(to, from, bytes);
  else
    copy_past_caches(static_cast<u8*>(to), static_cast<const u8*>(from), bytes);
}

}  // namespace verbena::coll
