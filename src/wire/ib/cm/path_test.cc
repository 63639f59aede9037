#include "wire/ib/cm/path.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace verbena::cm {
namespace {

TEST(PathTest, EveryFieldFull) {  // places: Linux's include/rdma/ibta_vol1_c12.h
  std::array<u8, Path::kSize> bytes = {0x12, 0x34, 0x56, 0x78};
  std::fill_n(bytes.begin() + 4, 16, u8{1});
  std::fill_n(bytes.begin() + 20, 16, u8{2});
  constexpr std::array<u8, 8> kRest = {0xab, 0xcd, 0xe0, 0x2b, 0x9c, 0x40, 0xd8, 0xa8};
  std::ranges::copy(kRest, bytes.begin() + 36);
  test::expect_both_ways<Path>(bytes, {.local_lid = 0x1234,
                                       .remote_lid = 0x5678,
                                       .local_gid = *GID::parse("101:101:101:101:101:101:101:101"),
                                       .remote_gid = *GID::parse("202:202:202:202:202:202:202:202"),
                                       .flow_label = 0xabcde,
                                       .packet_rate = 0x2b,
                                       .traffic_class = 0x9c,
                                       .hop_limit = 0x40,
                                       .sl = 13,
                                       .subnet_local = true,
                                       .local_ack_timeout = 21});
}

TEST(PathTest, ReservedBitsAreIgnored) {
  std::array<u8, Path::kSize> bytes{};
  bytes[38] = 0x0f;
  bytes[39] = 0xc0;
  bytes[42] = bytes[43] = 0x07;
  EXPECT_EQ(Path::decode(bytes), Path{});
}

}  // namespace
}  // namespace verbena::cm
