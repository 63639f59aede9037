#include "congestion/swift/swift.h"

#include <gtest/gtest.h>

#include "congestion/toy_network.h"
#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;
constexpr u32 kPacket = 1000;

SwiftParameters plain_swift() {
  return {.packet_bytes = kPacket,
          .base_target = us(20),
          .flow_scaling_range = ns(0),
          .max_window = 100};
}

struct SwiftTest : ::testing::Test {
  void ack(Duration rtt, u64 packets = 1) {
    now = now + rtt;
    flow.on_ack({.acknowledged_bytes = packets * kPacket, .round_trip = rtt}, now);
  }
  u64 window() const { return flow.window(now); }
  SwiftParameters p = plain_swift();
  Swift flow{p};
  Time now = kStart;
};

TEST_F(SwiftTest, ALateAckLowersTheWindowByHowLateItIs) {
  ack(us(25));
  EXPECT_EQ(window(), static_cast<u64>(100 * (1 - 0.8 * 0.2) * kPacket));
  ack(us(100));  // by half at most
  EXPECT_EQ(window(), static_cast<u64>(100 * (1 - 0.8 * 0.2) * 0.5 * kPacket));
}

TEST_F(SwiftTest, OneDecreaseInARoundTrip) {
  ack(us(100));
  const u64 once = window();
  EXPECT_EQ(once, 50u * kPacket);
  now = now + us(99);
  flow.on_ack({.acknowledged_bytes = kPacket, .round_trip = us(100)}, now);
  flow.on_nak(now);
  EXPECT_EQ(window(), once);
  now = now + us(1);
  flow.on_nak(now);
  EXPECT_EQ(window(), once / 2);
}

TEST_F(SwiftTest, TimelyAcksRaiseItByOnePacketInARoundTrip) {
  ack(us(100));  // 50 packets
  for (int i = 0; i < 50; ++i) ack(us(10));
  EXPECT_NEAR(static_cast<double>(window()), 51 * kPacket, 20);
}

TEST_F(SwiftTest, BelowOnePacketItIsPaced) {
  EXPECT_EQ(flow.rate(now), gbps(100));
  for (int i = 0; i < 8; ++i) ack(us(100));  // 100 / 2^8
  EXPECT_EQ(window(), kPacket);
  EXPECT_EQ(flow.rate(now).bps(), static_cast<u64>(100.0 / 256 * kPacket * 8 / 100e-6));
  ack(us(10));
  EXPECT_GT(flow.rate(now).bps(), static_cast<u64>(1.0 * kPacket * 8 / 10e-6) - 1);
}

TEST_F(SwiftTest, TheThirdTimeoutInARowStartsOver) {
  ack(us(10));
  flow.on_timeout(now);
  EXPECT_EQ(window(), 50u * kPacket);
  now = now + us(10);
  flow.on_timeout(now);
  EXPECT_EQ(window(), 25u * kPacket);
  flow.on_timeout(now);
  EXPECT_EQ(window(), kPacket);
  EXPECT_LT(flow.rate(now), mbps(2));
}

TEST(SwiftTargetTest, SmallerWindowsHaveALaterTarget) {
  SwiftParameters p = plain_swift();
  p.flow_scaling_range = us(50);
  p.max_window = 1000;
  Swift flow(p);
  Time now = kStart;
  EXPECT_EQ(flow.target_delay(), us(20));
  Duration last = flow.target_delay();
  for (int i = 0; i < 30; ++i) {
    now = now + ms(1);
    flow.on_nak(now);
    EXPECT_GE(flow.target_delay(), last);
    last = flow.target_delay();
  }
  EXPECT_NEAR(static_cast<double>(last.ns()), 70'000, 1);
}

TEST(SwiftParametersTest, HaveRanges) {
  EXPECT_TRUE(SwiftParameters{}.valid());
  EXPECT_FALSE(SwiftParameters{.packet_bytes = 0}.valid());
  EXPECT_FALSE(
      (SwiftParameters{.flow_scaling_min_window = 10, .flow_scaling_max_window = 10}.valid()));
  EXPECT_FALSE(SwiftParameters{.additive_increase = 0}.valid());
  EXPECT_FALSE(SwiftParameters{.max_decrease = 1}.valid());
  EXPECT_FALSE((SwiftParameters{.min_window = 2, .max_window = 1}.valid()));
}

TEST(SwiftNetworkTest, FlowsShareALinkAndKeepTheTarget) {
  SwiftParameters swift = plain_swift();
  swift.max_window = 250;
  const CongestionParameters p = {.algorithm = swift};
  for (const u32 flows : {2u, 8u}) {
    test::ToyNetwork network(p, flows, gbps(100), us(10));
    network.run(ms(50));
    const std::vector<double> shares = network.shares(ms(50));
    EXPECT_GT(test::sum_of(shares), 0.9) << flows;
    EXPECT_GT(test::fairness(shares), 0.95) << flows;
    EXPECT_LT(network.queueing(), us(30)) << flows;
  }
}

}  // namespace
}  // namespace verbena
