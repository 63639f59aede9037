// TCP alone on a bottleneck, against the analysis of long flows. With a sanitizer these take
// minutes.
#include <gtest/gtest.h>

#include <cmath>

#include "transport/tcp/toy_path.h"

namespace verbena::tcp {
namespace {

struct Recovery {
  bool sack, rack;
};
class Lossy : public testing::TestWithParam<Recovery> {};

// Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 1997:
// rate = MSS / RTT * C / sqrt(p), C = sqrt(3/2) where each segment is acknowledged. Within a fifth:
// some 150 losses by chance.
TEST_P(Lossy, RenoFollowsTheFormulaOfMathis) {
  for (const double loss : {0.0005, 0.002}) {
    Config config = config_of(ControlKind::kReno);
    config.sack = GetParam().sack;
    config.rack = GetParam().rack;
    config.rto_min = ms(5);
    config.segments_per_ack = 1;
    ToyPath path(config, {.rate = gbps(100), .delay = us(500), .loss = loss, .seed = 7});
    path.write(0, u64{1} << 40);
    path.run(Time() + ms(200));
    const u64 before = path[0].sender.acknowledged();
    path.run_for(sec(3));
    const double rate = static_cast<double>(path[0].sender.acknowledged() - before) / 3;
    const double formula = kMSS / 1e-3 * std::sqrt(1.5 / loss);
    EXPECT_NEAR(rate / formula, 1, 0.2) << loss;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Lossy,
                         testing::Values(Recovery{true, true}, Recovery{true, false},
                                         Recovery{false, false}));

// A window that loses one segment when it exceeds path and queue goes between half of that and
// that, and grows by a segment in each round trip.
TEST(LongFlows, RenosWindowIsASawtooth) {
  Config config = config_of(ControlKind::kReno);
  config.segments_per_ack = 1;
  // 100 segments on the way and 100 in the queue, at 1 Gb/s: 8 us each.
  ToyPath path(config, {.rate = gbps(1), .delay = us(396), .queue_bytes = 100 * kMSS});
  path.write(0, u64{1} << 40);
  path.run(Time() + ms(300));
  u64 least = ~u64{0}, most = 0;
  for (u32 i = 0; i < 5000; ++i) {
    path.run_for(us(100));
    least = std::min(least, path[0].sender.window());
    most = std::max(most, path[0].sender.window());
  }
  EXPECT_NEAR(static_cast<double>(most) / (200 * kMSS), 1, 0.05);
  EXPECT_NEAR(static_cast<double>(least) / static_cast<double>(most), 0.5, 0.05);
  EXPECT_EQ(path[0].sender.counters().timeouts, 0u);
}

TEST(LongFlows, FlowsShareFairly) {
  for (const ControlKind control : {ControlKind::kReno, ControlKind::kCUBIC, ControlKind::kDCTCP}) {
    constexpr u32 kFlows = 8;
    ToyPath path(
        config_of(control),
        {.rate = gbps(1), .delay = us(100), .queue_bytes = 200 * kMSS, .mark_above = 20 * kMSS},
        kFlows);
    for (u32 i = 0; i < kFlows; ++i) path.write(i, u64{1} << 40);
    path.run(Time() + ms(500));
    std::vector<u64> before;
    for (u32 i = 0; i < kFlows; ++i) before.push_back(path[i].sender.acknowledged());
    path.run_for(sec(2));
    double sum = 0, squares = 0;
    for (u32 i = 0; i < kFlows; ++i) {
      const double bytes = static_cast<double>(path[i].sender.acknowledged() - before[i]);
      sum += bytes;
      squares += bytes * bytes;
    }
    EXPECT_GT(sum * sum / (kFlows * squares), 0.9) << static_cast<int>(control);  // Jain's index
    EXPECT_GT(sum * 8 / 2e9, 0.95) << static_cast<int>(control);
  }
}

// Alizadeh et al., SIGCOMM 2010, 3.3: the queue stays around the threshold, without a loss.
TEST(LongFlows, DCTCPKeepsTheQueueShort) {
  ToyPath path(config_of(ControlKind::kDCTCP),
               {.rate = gbps(10), .delay = us(40), .mark_above = 40 * kMSS}, 2);
  for (u32 i = 0; i < 2; ++i) path.write(i, 100'000'000);
  EXPECT_FALSE(path.run(Time() + sec(10)));
  EXPECT_LT(path.longest_queue(), 200 * kMSS);
  EXPECT_EQ(path[0].sender.counters().retransmissions, 0u);
  EXPECT_GT(path[0].sender.counters().echoes, 10u);
}

}  // namespace
}  // namespace verbena::tcp
