// Helpers of the CM messages' decoders and encoders: byte runs, GIDs and fields narrower than a
// byte. Offsets are checked at compile time, as in base/bytes.h.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena::cm {

// Every CM message fills its MAD behind the common header.
inline constexpr std::size_t kMessageSize = 232;  // bytes

template <std::size_t At, std::size_t Count, std::size_t N>
constexpr std::array<u8, Count> get_bytes(std::span<const u8, N> in) {
  static_assert(At + Count <= N);
  std::array<u8, Count> bytes{};
  std::copy_n(in.begin() + At, Count, bytes.begin());
  return bytes;
}
template <std::size_t At, std::size_t Count, std::size_t N>
constexpr void put_bytes(std::span<u8, N> out, const std::array<u8, Count>& bytes) {
  static_assert(At + Count <= N);
  std::ranges::copy(bytes, out.begin() + At);
}

template <std::size_t At, std::size_t N>
constexpr GID get_gid(std::span<const u8, N> in) {
  return GID{.bytes = get_bytes<At, 16>(in)};
}
template <std::size_t At, std::size_t N>
constexpr void put_gid(std::span<u8, N> out, const GID& gid) {
  put_bytes<At>(out, gid.bytes);
}

// Returns the `width` bits of `byte` whose lowest is bit `shift`, counted from the least
// significant.
constexpr u8 get_bits(u8 byte, int shift, int width) {
  return static_cast<u8>((byte >> shift) & ((1 << width) - 1));
}
// Returns the same bits, to be or-ed into a byte. A value that does not fit is an error of ours.
constexpr u8 put_bits(u32 value, int shift, int width) {
  CHECK(value < (1u << width));
  return static_cast<u8>(value << shift);
}

}  // namespace verbena::cm
