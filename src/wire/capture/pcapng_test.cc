#include "wire/capture/pcapng.h"

#include <gtest/gtest.h>

namespace verbena::pcapng {
namespace {

u32 le32(const std::vector<u8>& bytes, std::size_t at) {
  return u32{bytes[at]} | u32{bytes[at + 1]} << 8 | u32{bytes[at + 2]} << 16 |
         u32{bytes[at + 3]} << 24;
}

// A block's two lengths are that of the block, and a multiple of 4.
void expect_one_block(const std::vector<u8>& bytes, u32 type) {
  ASSERT_GE(bytes.size(), 12u);
  EXPECT_EQ(le32(bytes, 0), type);
  EXPECT_EQ(le32(bytes, 4), bytes.size());
  EXPECT_EQ(le32(bytes, bytes.size() - 4), bytes.size());
  EXPECT_EQ(bytes.size() % 4, 0u);
}

TEST(PcapngTest, Section) {
  std::vector<u8> bytes;
  append_section("test", bytes);
  expect_one_block(bytes, 0x0a0d0d0a);
  EXPECT_EQ(le32(bytes, 8), 0x1a2b3c4du);
  EXPECT_EQ(le32(bytes, 12), 1u);  // version 1.0
  EXPECT_EQ(bytes.size(), 40u);
}

TEST(PcapngTest, Interface) {
  std::vector<u8> bytes;
  append_interface("eth0", bytes);
  expect_one_block(bytes, 1);
  EXPECT_EQ(le32(bytes, 8), 1u);  // LINKTYPE_ETHERNET
  EXPECT_EQ(le32(bytes, 12), 0u);
}

TEST(PcapngTest, PacketsOfAllSizes) {
  for (std::size_t size = 0; size < 9; ++size) {
    const std::vector<u8> frame(size, 0xee), tail{1, 2, 3};
    const std::array<std::span<const u8>, 2> parts{frame, tail};
    std::vector<u8> bytes;
    append_packet({.interface = 3,
                   .time_ns = (i64{7} << 32) + 9,
                   .direction = PacketDirection::kOutbound,
                   .comment = "why"},
                  parts, bytes);
    expect_one_block(bytes, 6);
    EXPECT_EQ(le32(bytes, 8), 3u);
    EXPECT_EQ(le32(bytes, 12), 7u);
    EXPECT_EQ(le32(bytes, 16), 9u);
    EXPECT_EQ(le32(bytes, 20), size + 3);
    EXPECT_EQ(le32(bytes, 24), size + 3);
    EXPECT_EQ(bytes[28 + size], 1);
    const std::size_t options = 28 + (size + 3 + 3) / 4 * 4;
    EXPECT_EQ(le32(bytes, options), 2u | 4u << 16);  // epb_flags
    EXPECT_EQ(le32(bytes, options + 4), 2u);
    EXPECT_EQ(le32(bytes, options + 8), 1u | 3u << 16);  // opt_comment
  }
}

}  // namespace
}  // namespace verbena::pcapng
