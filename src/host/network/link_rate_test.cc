#include "host/network/link_rate.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

TEST(LinkRateTest, TheLeastRateThatCarriesTheLink) {
  EXPECT_EQ(rate_for(100).to_string(), "2.5 Gb/sec (1X SDR)");
  EXPECT_EQ(rate_for(1'000).to_string(), "2.5 Gb/sec (1X SDR)");
  EXPECT_EQ(rate_for(1'001).to_string(), "10 Gb/sec (1X FDR10)");
  EXPECT_EQ(rate_for(25'000).to_string(), "25 Gb/sec (1X EDR)");
  EXPECT_EQ(rate_for(100'000).to_string(), "100 Gb/sec (4X EDR)");
  EXPECT_EQ(rate_for(800'000).to_string(), "400 Gb/sec (4X NDR)");
}

TEST(LinkRateTest, ALinkThatDoesNotTellHasTenGigabits) {
  EXPECT_EQ(speed_or_default_mbps(0), 10'000u);
  EXPECT_EQ(speed_or_default_mbps(40'000), 40'000u);
  EXPECT_EQ(rate_for(0), rate_for(10'000));
}

}  // namespace
}  // namespace verbena::host
