#include "congestion/hpcc/hpcc.h"

#include <gtest/gtest.h>

#include "congestion/toy_network.h"
#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;

HPCCParameters plain_hpcc() { return {.base_rtt = us(10), .additive_bytes = 100}; }

// 100 Gb/s for 10 us.
constexpr double kFull = 125'000;

struct HPCCTest : ::testing::Test {
  // The next acknowledgement, a round trip later, of a link that has sent `share` of its capacity
  // and has a queue.
  void ack(double share, u64 queue) {
    now = now + us(10);
    sent += static_cast<u64>(share * kFull);
    PathTelemetry path;
    path.count = 1;
    path.hops[0] = {.rate = gbps(100), .at = now, .sent_bytes = sent, .queued_bytes = queue};
    flow.on_ack({.acknowledged_bytes = 1000, .in_flight_bytes = 0, .path = &path}, now);
  }
  double window() const { return static_cast<double>(flow.window(now)); }
  HPCCParameters p = plain_hpcc();
  HPCC flow{p};
  Time now = kStart;
  u64 sent = 0;
};

TEST_F(HPCCTest, StartsWithAFullPipe) {
  EXPECT_EQ(window(), kFull);
  EXPECT_EQ(flow.rate(now), gbps(100));
  ack(2, 1'000'000);  // the first tells nothing: there is none before it
  EXPECT_EQ(window(), kFull);
}

TEST_F(HPCCTest, DividesByTheUtilization) {
  ack(0, 0);
  ack(1, 125'000);
  ack(1, 125'000);  // sent at full rate, with a queue of a whole pipe: U = 2
  EXPECT_DOUBLE_EQ(flow.alpha(now), 2);
  // The ack before it saw the lesser queue, 0: U was 1.
  const double after_first = kFull * 0.95 + 100;
  EXPECT_NEAR(window(), after_first * 0.95 / 2 + 100, 1);
}

TEST_F(HPCCTest, RisesAdditivelyThenToTheTarget) {
  ack(0, 0);
  ack(4, 0);  // U = 4
  const double low = window();
  EXPECT_NEAR(low, kFull * 0.95 / 4 + 100, 1);
  for (int i = 1; i <= 5; ++i) {
    ack(0.5, 0);
    EXPECT_NEAR(window(), low + 100 * i, 2) << i;
  }
  ack(0.5, 0);  // max_stage is over
  EXPECT_NEAR(window(), (low + 500) * 0.95 / 0.5 + 100, 3);
}

TEST_F(HPCCTest, TheMostLoadedHopCounts) {
  PathTelemetry path;
  path.count = 2;
  path.hops[0] = {.rate = gbps(100), .at = kStart};
  path.hops[1] = {.rate = gbps(400), .at = kStart};
  flow.on_ack({.acknowledged_bytes = 1000, .path = &path}, kStart);
  for (u32 i = 0; i < 2; ++i) path.hops[i].at = kStart + us(10);
  path.hops[0].sent_bytes = 25'000;   // 0.2
  path.hops[1].sent_bytes = 250'000;  // 0.5
  flow.on_ack({.acknowledged_bytes = 1000, .path = &path}, kStart);
  EXPECT_DOUBLE_EQ(flow.alpha(now), 0.5);
}

TEST_F(HPCCTest, WithinARoundTripTheReferenceStays) {
  ack(0, 0);
  ack(2, 0);
  double reference = 0;
  // Several acknowledgements in one round trip start from the same reference.
  for (int i = 0; i < 20; ++i) {
    now = now + ns(500);
    sent += 12'500;  // 2 x the rate
    PathTelemetry path;
    path.count = 1;
    path.hops[0] = {.rate = gbps(100), .at = now, .sent_bytes = sent};
    flow.on_ack({.acknowledged_bytes = 100, .in_flight_bytes = 10'000, .path = &path}, now);
    if (i == 1) reference = window();
    if (i <= 1) continue;
    EXPECT_NEAR(window(), reference, 1) << i;
  }
}

// The same loads, the one at the first hop, the other at the second: each hop has its own U.
TEST(HPCCLoopsTest, EachHopHasItsOwnIfAsked) {
  HPCCParameters p = plain_hpcc();
  p.loop = HPCCParameters::Loop::kEachHop;
  HPCC each(p);
  const HPCCParameters plain_one = plain_hpcc();
  HPCC one(plain_one);
  PathTelemetry path;
  path.count = 2;
  for (HopTelemetry& hop : path.hops) hop = {.rate = gbps(100), .at = kStart};
  Time now = kStart;
  for (u32 i = 0; i < 6; ++i) {
    for (HPCC* const flow : {&each, &one})
      flow->on_ack({.acknowledged_bytes = 1000, .path = &path}, now);
    now = now + us(5);                       // half a round trip
    path.hops[i % 2].sent_bytes += 125'000;  // twice what the link can
    for (HopTelemetry& hop : path.hops) hop.at = now;
  }
  EXPECT_LT(one.window(now), each.window(now));  // which thinks that one hop has it all
}

TEST(HPCCReactionTest, OnceInARoundTripIfAsked) {
  HPCCParameters p = plain_hpcc();
  p.reaction = HPCCParameters::Reaction::kEachRoundTrip;
  HPCC flow(p);
  PathTelemetry path;
  path.count = 1;
  path.hops[0] = {.rate = gbps(100), .at = kStart};
  flow.on_ack({.acknowledged_bytes = 1000, .in_flight_bytes = 10'000, .path = &path}, kStart);
  path.hops[0] = {.rate = gbps(100), .at = kStart + us(10), .sent_bytes = 250'000};
  flow.on_ack({.acknowledged_bytes = 1000, .in_flight_bytes = 10'000, .path = &path}, kStart);
  EXPECT_EQ(flow.window(kStart), 125'000u);
  flow.on_ack({.acknowledged_bytes = 10'000, .in_flight_bytes = 0, .path = &path}, kStart);
  EXPECT_LT(flow.window(kStart), 70'000u);
}

TEST(HPCCBoundTest, ByTheRateAloneIfAsked) {
  HPCCParameters p = plain_hpcc();
  p.bound = HPCCParameters::Bound::kRate;
  EXPECT_EQ(HPCC(p).window(kStart), kNoWindow);
}

TEST_F(HPCCTest, NoTelemetryOrAnotherPathChangesNothing) {
  ack(0, 0);
  flow.on_ack({.acknowledged_bytes = 1000}, now);
  PathTelemetry path;
  path.count = 3;
  flow.on_ack({.acknowledged_bytes = 1000, .path = &path}, now);
  EXPECT_EQ(window(), kFull);
}

TEST_F(HPCCTest, StaysWithinItsBounds) {
  ack(0, 0);
  for (int i = 0; i < 50; ++i) ack(1, 10'000'000);
  EXPECT_EQ(flow.rate(now), p.min_rate);
  for (int i = 0; i < 50; ++i) ack(0.01, 0);
  EXPECT_EQ(flow.rate(now), gbps(100));
}

TEST(HPCCParametersTest, HaveRanges) {
  EXPECT_TRUE(HPCCParameters{}.valid());
  EXPECT_FALSE(HPCCParameters{.eta = 0}.valid());
  EXPECT_FALSE(HPCCParameters{.eta = 1.1}.valid());
  EXPECT_FALSE(HPCCParameters{.base_rtt = ns(0)}.valid());
}

TEST(HPCCNetworkTest, FlowsShareALinkWithAlmostNoQueue) {
  const CongestionParameters p = {.algorithm = plain_hpcc()};
  for (const u32 flows : {2u, 8u}) {
    test::ToyNetwork network(p, flows, gbps(100), us(10));
    network.run(ms(50));
    const std::vector<double> shares = network.shares(ms(50));
    EXPECT_GT(test::sum_of(shares), 0.85) << flows;
    EXPECT_LT(test::sum_of(shares), 0.99) << flows;  // eta
    EXPECT_GT(test::fairness(shares), 0.95) << flows;
    EXPECT_LT(network.queueing(), us(5)) << flows;
  }
}

}  // namespace
}  // namespace verbena
