// SGE: one element of a scatter/gather list. IBTA Vol 1, 10.8.1 (Data Segment).
#pragma once

#include <span>

#include "base/types.h"

namespace verbena {

inline constexpr u32 kMaxSGE = 32;                // elements in one work request
inline constexpr u32 kMaxMessageSize = 1u << 31;  // bytes. IBTA 9.7.7 (2^31)

struct SGE {
  u64 address = 0;  // in the region's own address space (its iova)
  u32 length = 0;   // bytes
  LKey l_key{};
  friend constexpr bool operator==(const SGE&, const SGE&) = default;
};

using MutableBytes = std::span<u8>;
using Bytes = std::span<const u8>;

}  // namespace verbena
