// A hash of bytes that lie in pieces, to detect later whether they have changed.
#pragma once

#include <optional>

#include "memory/sge.h"

namespace verbena::check {

// Pieces up to this long are hashed as a whole. Of a longer piece, its first and last kEdge bytes
// are hashed, and kSample bytes of every kStride between.
inline constexpr std::size_t kHashedWhole = 1 << 20;
inline constexpr std::size_t kEdge = 4096, kStride = 1024, kSample = 64;

// Returns nullopt if some of the bytes cannot be read.
[[nodiscard]] std::optional<u64> hash_of(std::span<const Bytes> pieces);

}  // namespace verbena::check
