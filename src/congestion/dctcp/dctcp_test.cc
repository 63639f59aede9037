#include "congestion/dctcp/dctcp.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

constexpr Time kNow = Time::from_ns(1'000'000);

struct DCTCPTest : ::testing::Test {
  // A round trip of ten packets, of which the first are marked.
  void round(u32 marked) {
    for (u32 i = 0; i < 10; ++i) {
      if (i < marked) flow.on_cnp(kNow);
      flow.on_ack({.acknowledged_octets = 1000, .in_flight_octets = 9000}, kNow);
    }
  }
  u64 rate() const { return flow.rate(kNow).bps(); }
  DCTCPParameters p;
  DCTCP flow{p};
};

TEST_F(DCTCPTest, WithoutMarksAlphaFallsAndTheRateStays) {
  round(0);
  round(0);
  EXPECT_DOUBLE_EQ(flow.alpha(kNow), 1 - p.g);
  EXPECT_EQ(flow.rate(kNow), p.line_rate);
}

TEST_F(DCTCPTest, TheFirstMarkOfARoundTripLowersTheRateAndNoOther) {
  round(10);
  EXPECT_EQ(rate(), 5'000'000'000u);  // alpha was 1
}

TEST_F(DCTCPTest, AlphaFollowsTheShareOfMarks) {
  for (int i = 0; i < 200; ++i) round(4);
  EXPECT_NEAR(flow.alpha(kNow), 0.4, 0.01);
}

TEST_F(DCTCPTest, RisesOnceInARoundTripWithoutMarks) {
  round(10);
  const u64 low = rate();
  for (int i = 0; i < 3; ++i) round(0);
  EXPECT_EQ(rate(), low + 3 * p.additive_increase.bps());
}

TEST_F(DCTCPTest, StaysWithinItsBounds) {
  for (int i = 0; i < 200; ++i) round(10);
  EXPECT_EQ(flow.rate(kNow), p.min_rate);
  for (int i = 0; i < 200; ++i) round(0);
  EXPECT_EQ(flow.rate(kNow), p.line_rate);
}

TEST(DCTCPParametersTest, HaveRanges) {
  EXPECT_TRUE(DCTCPParameters{}.valid());
  EXPECT_FALSE(DCTCPParameters{.g = 0}.valid());
  EXPECT_FALSE(DCTCPParameters{.additive_increase = Rate{}}.valid());
  EXPECT_FALSE(DCTCPParameters{.packet_octets = 0}.valid());
}

}  // namespace
}  // namespace verbena
