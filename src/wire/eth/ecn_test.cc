#include "wire/eth/ecn.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(ECNTest, EveryTrafficClassBothWays) {
  for (int i = 0; i < 256; ++i) {
    const u8 traffic_class = static_cast<u8>(i);
    EXPECT_EQ(traffic_class_of(dscp_of(traffic_class), ecn_of(traffic_class)), traffic_class);
  }
  EXPECT_EQ(dscp_of(0x6b), 26);  // AF31
  EXPECT_EQ(ecn_of(0x6b), ECN::kCE);
  EXPECT_EQ(ecn_of(0x6a), ECN::kECT0);
  EXPECT_EQ(ecn_of(0x69), ECN::kECT1);
}

}  // namespace
}  // namespace verbena
