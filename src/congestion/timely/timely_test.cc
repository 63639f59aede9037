#include "congestion/timely/timely.h"

#include <gtest/gtest.h>

#include "congestion/toy_network.h"
#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;

struct TIMELYTest : ::testing::Test {
  void segment(Duration rtt) {
    flow.on_ack({.acknowledged_bytes = 16384, .round_trip = rtt}, kStart);
  }
  u64 rate() const { return flow.rate(kStart).bps(); }
  // Down to something that can rise.
  void lower() {
    for (int i = 0; i < 3; ++i) segment(ms(5));
    low = rate();
  }
  TIMELYParameters p;
  TIMELY flow{p};
  u64 low = 0;
};

TEST_F(TIMELYTest, BelowTLowItRisesByDelta) {
  lower();
  segment(us(49));
  EXPECT_EQ(rate(), low + 10'000'000);
}

TEST_F(TIMELYTest, AboveTHighItFallsInProportion) {
  segment(us(1000));
  EXPECT_EQ(rate(), static_cast<u64>(10e9 * (1 - 0.8 * (1 - 0.5))));
}

TEST_F(TIMELYTest, ARisingRoundTripLowersTheRate) {
  segment(us(100));
  EXPECT_EQ(rate(), 10'000'000'000u);  // nothing to compare with
  segment(us(110));
  const double gradient = 0.875 * 10 / 20;
  EXPECT_NEAR(static_cast<double>(rate()), 10e9 * (1 - 0.8 * gradient), 1);
}

TEST_F(TIMELYTest, AFallingOneRaisesItFasterTheFifthTime) {
  lower();
  for (int i = 0; i < 4; ++i) segment(us(400 - 10 * i));
  EXPECT_EQ(rate(), low + 4 * 10'000'000);
  segment(us(350));
  EXPECT_EQ(rate(), low + 9 * 10'000'000);
}

TEST_F(TIMELYTest, OneRoundTripCountsForEachSegment) {
  for (int i = 0; i < 3; ++i) {
    flow.on_ack({.acknowledged_bytes = 4096, .round_trip = ms(1)}, kStart);
    EXPECT_EQ(rate(), 10'000'000'000u);
  }
  flow.on_ack({.acknowledged_bytes = 4096, .round_trip = ms(1)}, kStart);
  EXPECT_LT(rate(), 10'000'000'000u);
}

// As in HPCC's ns-3 model: the sixth rise of any kind is large, and each round trip has one sample.
TEST(TIMELYModelTest, CountsRoundTripsAndAllRises) {
  const TIMELYParameters p{.variant = TIMELYParameters::Variant::kHPCCModel};
  TIMELY flow(p);
  const auto ack = [&](Duration rtt, u64 bytes) {
    flow.on_ack({.acknowledged_bytes = bytes, .in_flight_bytes = 9000, .round_trip = rtt}, kStart);
  };
  ack(us(30), 1000);  // the first is only noted
  ack(ms(5), 9000);   // the round trip is not over
  EXPECT_EQ(flow.rate(kStart), gbps(10));
  ack(ms(5), 1000);
  const u64 low = flow.rate(kStart).bps();
  EXPECT_EQ(low, static_cast<u64>(10e9 * (1 - 0.8 * 0.9)));
  for (int i = 0; i < 5; ++i) ack(us(30), 10'000);
  EXPECT_EQ(flow.rate(kStart).bps(), low + 5 * 10'000'000);
  ack(us(30), 10'000);
  EXPECT_EQ(flow.rate(kStart).bps(), low + 5 * 10'000'000 + 50'000'000);
}

TEST_F(TIMELYTest, StaysWithinItsBounds) {
  for (int i = 0; i < 100; ++i) segment(sec(1));
  EXPECT_EQ(rate(), 1'000'000u);
  for (int i = 0; i < 2000; ++i) segment(us(1));
  EXPECT_EQ(rate(), 10'000'000'000u);
  for (int i = 0; i < 10; ++i) segment(us(51 + 400 * (i & 1)));  // any gradient
  EXPECT_GE(rate(), 1'000'000u);
}

TEST_F(TIMELYTest, ParametersHaveRanges) {
  EXPECT_TRUE(p.valid());
  EXPECT_FALSE(TIMELYParameters{.alpha = 2}.valid());
  EXPECT_FALSE(TIMELYParameters{.beta = -0.1}.valid());
  EXPECT_FALSE((TIMELYParameters{.t_low = us(10), .t_high = us(5)}.valid()));
  EXPECT_FALSE(TIMELYParameters{.min_rtt = ns(0)}.valid());
  EXPECT_FALSE(TIMELYParameters{.segment_bytes = 0}.valid());
}

TEST(TIMELYNetworkTest, FlowsFillALinkAndBoundItsQueue) {
  const CongestionParameters p = {.algorithm = TIMELYParameters{.min_rate = mbps(100)}};
  test::ToyNetwork network(p, 4, gbps(10), us(20));
  network.run(ms(100));
  const std::vector<double> shares = network.shares(ms(200));
  EXPECT_GT(test::sum_of(shares), 0.85);
  EXPECT_GT(test::fairness(shares),
            0.8);  // all see the same round trips: see Zhu et al., CoNEXT'16
  EXPECT_LT(network.queueing(), ms(1));
}

}  // namespace
}  // namespace verbena
