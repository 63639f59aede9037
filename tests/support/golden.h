// The golden test of a wire header: the bytes lie in a capture where the test says, they decode to
// the expected fields and encode to the same bytes again, and every truncation is refused.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "tests/support/pcap.h"

namespace verbena::test {

// Offsets in a frame of the captures: no VLAN tag, no IP options.
inline constexpr std::size_t kIPAt = 14;
inline constexpr std::size_t kIPv4TransportAt = 42;
inline constexpr std::size_t kIPv4ExtendedAt = 54;          // behind the BTH
inline constexpr std::size_t kMADAt = kIPv4ExtendedAt + 8;  // behind the DETH
inline constexpr std::size_t kCMMessageAt = kMADAt + 24;    // behind the MAD header

struct InCapture {
  std::string file;
  std::size_t frame;   // number, from 1
  std::size_t offset;  // bytes
};

inline void expect_in_capture(const InCapture& where, std::span<const u8> bytes) {
  const std::vector<u8> frame = captured_frame(where.file, where.frame);
  ASSERT_LE(where.offset + bytes.size(), frame.size());
  EXPECT_TRUE(std::ranges::equal(bytes, std::span(frame).subspan(where.offset, bytes.size())))
      << where.file << " frame " << where.frame << " has other bytes";
}

template <typename Header>
void expect_both_ways(const std::array<u8, Header::kSize>& bytes, const Header& expected) {
  const std::optional<Header> decoded = Header::decode(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, expected);
  std::array<u8, Header::kSize> again;
  again.fill(0xa5);  // encode must write every byte
  decoded->encode(again);
  EXPECT_EQ(again, bytes);
  for (std::size_t n = 0; n < Header::kSize; ++n)
    EXPECT_FALSE(Header::decode(std::span(bytes).first(n)).has_value()) << n;
}

template <typename Header>
void expect_golden(const InCapture& where, const std::array<u8, Header::kSize>& bytes,
                   const Header& expected) {
  expect_in_capture(where, bytes);
  expect_both_ways(bytes, expected);
}

}  // namespace verbena::test
