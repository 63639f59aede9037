#include "congestion/congestion_control.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "congestion/presets.h"
#include "congestion/toy_network.h"
#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;

TEST(CongestionControlTest, AWindowFollowsTheRateIfAsked) {
  const CongestionParameters p{
      .algorithm = DCQCNParameters{.line_rate = gbps(100)},
      .window = {
          .kind = WindowParameters::Kind::kByRate, .bytes = 300'000, .line_rate = gbps(100)}};
  CongestionControl control(p);
  EXPECT_TRUE(control.wants_acks());
  EXPECT_EQ(control.window(kStart), 300'000u);
  control.on_cnp(kStart);
  EXPECT_EQ(control.window(kStart), 150'000u);
}

TEST(CongestionControlTest, OnlyThoseThatHeedAcksAreTold) {
  for (const std::string_view name : congestion_names()) {
    const CongestionParameters p = *congestion_named(name, gbps(100));
    if (!p.controls()) continue;
    EXPECT_EQ(CongestionControl(p).wants_acks(), !name.starts_with("dcqcn") && name != "ib_cc")
        << name;
  }
}

// For any signals in any order: rates stay between 1 bit/s and the line rate, windows let at least
// one byte pass, and the same calls give the same results.
TEST(CongestionControlTest, AnySignalsLeaveABoundedRate) {
  for (const std::string_view name : congestion_names()) {
    const CongestionParameters p = *congestion_named(name, gbps(100));
    if (!p.controls()) continue;
    for (u64 seed = 1; seed <= 20; ++seed) {
      CongestionControl one(p), two(p);
      PRNG prng(seed);
      Time now = kStart;
      PathTelemetry path;
      for (int i = 0; i < 2000; ++i) {
        now =
            now + ps(static_cast<i64>(prng.below(prng.chance(0.01) ? 10'000'000'000 : 5'000'000)));
        path.count = static_cast<u32>(prng.below(PathTelemetry::kMaxHops + 1));
        for (HopTelemetry& hop : path.hops)
          hop = {.rate = Rate::from_bps(prng.below(800'000'000'000)),
                 .at = Time::from_ps(static_cast<i64>(prng.below(1u << 31)) * 1000),
                 .sent_bytes = prng.next(),
                 .queued_bytes = prng.next()};
        const AckSignal ack{.acknowledged_bytes = prng.below(1u << 20),
                            .in_flight_bytes = prng.below(1u << 20),
                            .round_trip = ps(static_cast<i64>(prng.below(5'000'000'000))),
                            .path = prng.chance(0.5) ? &path : nullptr};
        const u64 kind = prng.below(6);
        for (CongestionControl* const control : {&one, &two}) {
          if (kind == 0) control->on_cnp(now);
          if (kind == 1) control->on_nak(now);
          if (kind == 2) control->on_timeout(now);
          if (kind == 3) control->on_sent(ack.acknowledged_bytes, now);
          if (kind >= 4) control->on_ack(ack, now);
        }
        ASSERT_GE(one.rate(now), Rate::from_bps(1)) << name << ' ' << seed << ' ' << i;
        ASSERT_LE(one.rate(now), gbps(100)) << name << ' ' << seed << ' ' << i;
        ASSERT_GE(one.window(now), 1u) << name << ' ' << seed << ' ' << i;
        ASSERT_EQ(one.rate(now), two.rate(now));
        ASSERT_EQ(one.window(now), two.window(now));
      }
    }
  }
}

TEST(CongestionControlTest, AFixedWindowBoundsTheQueue) {
  const CongestionParameters p{
      .algorithm = ConstantRateParameters{.line_rate = gbps(100)},
      .window = {.kind = WindowParameters::Kind::kFixed, .bytes = 125'000}};
  test::ToyNetwork network(p, 4, gbps(100), us(10));
  network.run(ms(1));
  const std::vector<double> shares = network.shares(ms(10));
  EXPECT_GT(test::sum_of(shares), 0.95);
  // Four windows, of which one is in flight.
  EXPECT_NEAR(static_cast<double>(network.queueing().ns()), 30'000, 3'000);
}

}  // namespace
}  // namespace verbena
