#include "wire/ib/mtu.h"

#include <gtest/gtest.h>

#include <array>

namespace verbena {
namespace {

constexpr std::array kAll = {MTU::k256, MTU::k512, MTU::k1024, MTU::k2048, MTU::k4096};

TEST(MTUTest, BytesAndCodesBothWays) {
  u32 size = 256;
  u8 code = 1;
  for (const MTU mtu : kAll) {
    EXPECT_EQ(bytes(mtu), size);
    EXPECT_EQ(mtu_from_bytes(size), mtu);
    EXPECT_EQ(mtu_from_code(code), mtu);
    EXPECT_EQ(static_cast<u8>(mtu), code);
    size *= 2;
    ++code;
  }
}

TEST(MTUTest, OthersAreRefused) {
  for (const u32 size : {0u, 128u, 255u, 257u, 1000u, 4095u, 8192u, 0x80000000u})
    EXPECT_FALSE(mtu_from_bytes(size).has_value()) << size;
  for (const int code : {0, 6, 7, 255})
    EXPECT_FALSE(mtu_from_code(static_cast<u8>(code)).has_value()) << code;
}

TEST(MTUTest, LargestForALink) {
  EXPECT_EQ(largest_mtu_for_link(1500), MTU::k1024);  // as the guests of tests/captures/ found
  EXPECT_EQ(largest_mtu_for_link(9000), MTU::k4096);
  EXPECT_EQ(largest_mtu_for_link(4200), MTU::k4096);  // what administrators set for 4096
  EXPECT_EQ(largest_mtu_for_link(65535), MTU::k4096);
  for (const MTU mtu : kAll) {
    EXPECT_EQ(largest_mtu_for_link(bytes(mtu) + kRoCEOverheadBytes), mtu);
    EXPECT_NE(largest_mtu_for_link(bytes(mtu) + kRoCEOverheadBytes - 1), mtu);
  }
  EXPECT_FALSE(largest_mtu_for_link(351).has_value());
  EXPECT_FALSE(largest_mtu_for_link(0).has_value());
}

}  // namespace
}  // namespace verbena
