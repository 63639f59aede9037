#include "abi/paths/netlink_message.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbena::abi::paths {
namespace {

std::vector<u8> bytes(std::span<const u8> bytes) { return {bytes.begin(), bytes.end()}; }

// As the kernel lays them out on a machine with little-endian numbers.
TEST(NetlinkMessageTest, AttributesArePaddedAndNested) {
  NetlinkWriter writer(7, 9);
  writer.begin(0x1401, NLM_F_MULTI);
  writer.put(1, u32{0x11223344});
  writer.put_text(2, "ab");
  const std::size_t nest = writer.open_nest(15);
  writer.put(14, u8{1});
  writer.close_nest(nest);
  writer.end();
  EXPECT_TRUE(writer.is_whole());
  EXPECT_EQ(bytes(writer.bytes()),
            (std::vector<u8>{
                0x2c, 0, 0,  0,    1,    0x14, 2,    0,    7, 0, 0, 0, 9, 0, 0, 0,  // nlmsghdr
                8,    0, 1,  0,    0x44, 0x33, 0x22, 0x11,                          // u32
                7,    0, 2,  0,    'a',  'b',  0,    0,                    // string, padded
                12,   0, 15, 0x80, 5,    0,    14,   0,    1, 0, 0, 0}));  // nest of a u8
}

TEST(NetlinkMessageTest, ResultAndEnd) {
  nlmsghdr about{
      .nlmsg_len = 16, .nlmsg_type = 1, .nlmsg_flags = 2, .nlmsg_seq = 3, .nlmsg_pid = 4};
  NetlinkWriter writer(3, 4);
  writer.put_result(about, 22);
  writer.put_done();
  EXPECT_EQ(
      bytes(writer.bytes()),
      (std::vector<u8>{36,   0,    0,    0,    NLMSG_ERROR, 0, 0, 1, 3, 0, 0, 0, 4, 0, 0, 0,  //
                       0xea, 0xff, 0xff, 0xff,                                                // -22
                       16,   0,    0,    0,    1,           0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0,  //
                       20,   0,    0,    0,    NLMSG_DONE,  0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0,  //
                       0,    0,    0,    0}));
}

TEST(NetlinkMessageTest, WhatHasNoRoomIsNotWhole) {
  NetlinkWriter writer(1, 1);
  writer.begin(1, 0);
  while (writer.left() >= 8) writer.put(1, u32{0});
  EXPECT_TRUE(writer.is_whole());
  writer.put(1, u64{0});
  EXPECT_FALSE(writer.is_whole());
  EXPECT_LE(writer.bytes().size(), NetlinkWriter::kRoom);
}

TEST(NetlinkMessageTest, RequestsAreReadOneByOne) {
  NetlinkWriter writer(5, 0);
  writer.begin(0x1405, NLM_F_REQUEST);
  writer.put(2, u8{7});
  writer.put(1, u32{3});
  writer.end();
  writer.begin(0x1401, NLM_F_REQUEST);
  writer.end();
  std::span<const u8> rest = writer.bytes();
  const auto first = NetlinkRequest::take(rest);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->header.nlmsg_type, 0x1405);
  EXPECT_EQ(first->number(1), 3u);
  EXPECT_EQ(first->number(2), std::nullopt) << "of another size";
  EXPECT_EQ(first->number(4), std::nullopt);
  const auto second = NetlinkRequest::take(rest);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->header.nlmsg_type, 0x1401);
  EXPECT_FALSE(NetlinkRequest::take(rest).has_value());
}

TEST(NetlinkMessageTest, EveryTruncationIsRefused) {
  NetlinkWriter writer(5, 0);
  writer.begin(0x1405, NLM_F_REQUEST);
  writer.put(1, u32{3});
  writer.end();
  for (std::size_t n = 0; n < writer.bytes().size(); ++n) {
    std::vector<u8> cut = bytes(writer.bytes().first(n));
    std::span<const u8> rest = cut;
    EXPECT_FALSE(NetlinkRequest::take(rest).has_value()) << n;
  }
  std::vector<u8> lying = bytes(writer.bytes());
  for (const int length : {0, 3, 9, 255}) {  // of the attribute
    lying[16] = static_cast<u8>(length);
    std::span<const u8> rest = lying;
    const auto request = NetlinkRequest::take(rest);
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->number(1), std::nullopt) << length;
  }
}

}  // namespace
}  // namespace verbena::abi::paths
