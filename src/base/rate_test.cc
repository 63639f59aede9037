#include "base/rate.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(RateTest, TimeIsExactToThePicosecond) {
  EXPECT_EQ(gbps(800).time_of(1048), ps(10'480));
  EXPECT_EQ(gbps(100).time_of(1048), ps(83'840));
  EXPECT_EQ(mbps(1).time_of(1), us(8));
  EXPECT_EQ(Rate::from_bps(3).time_of(1), ps(2'666'666'666'666));  // rounded down
  EXPECT_EQ(kbps(1).time_of(Rate::kMaxBytes), sec(16'000));
}

TEST(RateTest, NothingIsFasterThanUnlimited) {
  EXPECT_GT(Rate::unlimited(), gbps(800));
  EXPECT_EQ(Rate::unlimited().time_of(1500), ps(0));
}

}  // namespace
}  // namespace verbena
