#include "congestion/dctcp/dctcp.h"

#include <gtest/gtest.h>

#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;

struct DCTCPTest : ::testing::Test {
  // A round trip of ten packets, of which the first are marked.
  void round(u32 marked) {
    for (u32 i = 0; i < 10; ++i) {
      if (i < marked) flow.on_cnp(kStart);
      flow.on_ack({.acknowledged_bytes = 1000, .in_flight_bytes = 9000}, kStart);
    }
  }
  u64 rate() const { return flow.rate(kStart).bps(); }
  DCTCPParameters p;
  DCTCP flow{p};
};

TEST_F(DCTCPTest, WithoutMarksAlphaFallsAndTheRateStays) {
  round(0);
  round(0);
  EXPECT_DOUBLE_EQ(flow.alpha(kStart), 1 - p.g);
  EXPECT_EQ(flow.rate(kStart), p.line_rate);
}

TEST_F(DCTCPTest, TheFirstMarkOfARoundTripLowersTheRateAndNoOther) {
  round(10);
  EXPECT_EQ(rate(), 5'000'000'000u);  // alpha was 1
}

TEST_F(DCTCPTest, AlphaFollowsTheShareOfMarks) {
  for (int i = 0; i < 200; ++i) round(4);
  EXPECT_NEAR(flow.alpha(kStart), 0.4, 0.01);
}

TEST_F(DCTCPTest, RisesOnceInARoundTripWithoutMarks) {
  round(10);
  const u64 low = rate();
  for (int i = 0; i < 3; ++i) round(0);
  EXPECT_EQ(rate(), low + 3 * p.additive_increase.bps());
}

TEST_F(DCTCPTest, StaysWithinItsBounds) {
  for (int i = 0; i < 200; ++i) round(10);
  EXPECT_EQ(flow.rate(kStart), p.min_rate);
  for (int i = 0; i < 200; ++i) round(0);
  EXPECT_EQ(flow.rate(kStart), p.line_rate);
}

TEST(DCTCPParametersTest, HaveRanges) {
  EXPECT_TRUE(DCTCPParameters{}.valid());
  EXPECT_FALSE(DCTCPParameters{.g = 0}.valid());
  EXPECT_FALSE(DCTCPParameters{.additive_increase = Rate{}}.valid());
  EXPECT_FALSE(DCTCPParameters{.packet_bytes = 0}.valid());
}

}  // namespace
}  // namespace verbena
