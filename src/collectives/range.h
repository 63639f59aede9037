// Range: bytes of one rank's memory, and how a range is cut into parts that differ by one element
// at most. Part i of n begins at element floor(i * elements / n), so parts need no table and may be
// empty.
#pragma once

#include "base/types.h"

namespace verbena::collectives {

struct Range {
  u64 offset = 0, length = 0;  // bytes
  [[nodiscard]] constexpr u64 end() const { return offset + length; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

// `element_bytes` divides the length of `whole`. Elements times parts: below 2^64.
[[nodiscard]] constexpr Range part(const Range& whole, u64 parts, u64 index, u64 element_bytes) {
  const u64 elements = whole.length / element_bytes;
  const u64 begin = elements * index / parts, end = elements * (index + 1) / parts;
  return {whole.offset + begin * element_bytes, (end - begin) * element_bytes};
}

// How many pieces of at most `most` bytes a length is cut into; 0: one, however long.
[[nodiscard]] constexpr u64 pieces(u64 length, u64 most) {
  return most == 0 || length == 0 ? 1 : (length + most - 1) / most;
}

}  // namespace verbena::collectives
