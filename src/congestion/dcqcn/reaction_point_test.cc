#include "congestion/dcqcn/reaction_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/prng.h"
#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;

// Behaves as NVIDIA's adapters, with the times of a common configuration.
DCQCNParameters periodic() {
  return {.line_rate = gbps(100),
          .min_rate = gbps(1),
          .decrease = DCQCNParameters::Decrease::kPeriodic,
          .clamp = DCQCNParameters::Clamp::kAfterIncrease,
          .decrease_interval = us(4),
          .decrease_offset = ns(1),
          .alpha_interval = us(1),
          .increase_interval = us(300),
          .byte_counter = 0,
          .fast_recovery = 1,
          .additive_increase = mbps(20),
          .hyper_increase = mbps(200)};
}

// The periodic kind once more, with timers that fire one by one.
class Timers {
 public:
  explicit Timers(const DCQCNParameters& p)
      : p_(p), rate_(p.line_rate.bps()), target_(p.line_rate.bps()) {}

  void on_cnp(Time now) {
    run(now);
    if (started_) {
      alpha_cnp_ = decrease_cnp_ = true;
      return;
    }
    started_ = decrease_cnp_ = true;
    alpha_ = 1;
    alpha_at_ = now + p_.alpha_interval;
    decrease_at_ = now + p_.decrease_offset + p_.decrease_interval;
  }
  void run(Time now) {
    for (;;) {
      const Time next = std::min({alpha_at_, decrease_at_, increase_at_});
      if (next > now) return;
      if (alpha_at_ == next) {
        alpha_ = (1 - p_.g) * alpha_ + (alpha_cnp_ ? p_.g : 0);
        alpha_cnp_ = false;
        alpha_at_ = alpha_at_ + p_.alpha_interval;
      } else if (increase_at_ == next && (decrease_at_ != next || increase_was_set_first())) {
        increase();
        increase_at_ = increase_at_ + p_.increase_interval;
      } else {
        if (decrease_cnp_) decrease();
        decrease_at_ = decrease_at_ + p_.decrease_interval;
      }
    }
  }
  u64 rate() const { return rate_; }
  u64 target() const { return target_; }
  double alpha() const { return alpha_; }

 private:
  bool increase_was_set_first() const { return p_.increase_interval > p_.decrease_interval; }
  void decrease() {
    if (stage_ != 0 || p_.clamp == DCQCNParameters::Clamp::kAlways) target_ = rate_;
    const auto lowered = static_cast<u64>(static_cast<double>(rate_) * (1 - alpha_ / 2));
    rate_ = std::max(p_.min_rate.bps(), lowered);
    stage_ = 0;
    decrease_cnp_ = false;
    increase_at_ = decrease_at_ + p_.increase_interval;
  }
  void increase() {
    if (stage_ >= p_.fast_recovery) {
      const Rate step = stage_ == p_.fast_recovery ? p_.additive_increase : p_.hyper_increase;
      target_ = std::min(p_.line_rate.bps(), target_ + step.bps());
    }
    rate_ = rate_ / 2 + target_ / 2;
    ++stage_;
  }

  const DCQCNParameters p_;
  u64 rate_, target_;
  double alpha_ = 1;
  u32 stage_ = 0;
  bool started_ = false, alpha_cnp_ = false, decrease_cnp_ = false;
  Time alpha_at_ = Time::never(), decrease_at_ = Time::never(), increase_at_ = Time::never();
};

TEST(ReactionPointTest, LazyEqualsTimersBitForBit) {
  for (u64 seed = 1; seed <= 200; ++seed) {
    PRNG prng(seed);
    DCQCNParameters p = periodic();
    p.increase_interval = us(static_cast<i64>(prng.in(5, 400)));
    p.decrease_interval = us(static_cast<i64>(prng.in(1, 60)));
    p.alpha_interval = us(static_cast<i64>(prng.in(1, 60)));
    if (prng.in(0, 1) == 1) p.clamp = DCQCNParameters::Clamp::kAlways;
    if (prng.in(0, 1) == 1) p.g = 1.0 / 16;
    ReactionPoint lazy(p);
    Timers timers(p);
    Time now = kStart;
    for (int i = 0; i < 300; ++i) {
      // Bursts of CNPs, odd waits, and long silences.
      const u64 kind = prng.in(0, 99);
      now = now + (kind < 90   ? ns(static_cast<i64>(prng.in(80, 9'000)))
                   : kind < 98 ? ns(static_cast<i64>(prng.in(10'000, 900'000)))
                               : us(static_cast<i64>(prng.in(1'000, 100'000))));
      if (prng.in(0, 3) != 0) lazy.on_cnp(now), timers.on_cnp(now);
      timers.run(now);
      if (prng.in(0, 1) == 0) continue;  // it is not asked all the time
      ASSERT_EQ(lazy.rate(now).bps(), timers.rate()) << seed << ' ' << i;
      if (prng.in(0, 1) == 0) continue;
      ASSERT_EQ(lazy.target(now).bps(), timers.target()) << seed << ' ' << i;
      ASSERT_EQ(lazy.alpha(now) <= 1e-20 ? 0 : lazy.alpha(now),
                timers.alpha() <= 1e-20 ? 0 : timers.alpha())
          << seed << ' ' << i;
    }
  }
}

TEST(ReactionPointTest, StartsAtLineRateAndStaysThereWithoutACNP) {
  const DCQCNParameters p = periodic();
  ReactionPoint flow(p);
  flow.on_sent(1'000'000'000, kStart);
  EXPECT_EQ(flow.rate(kStart + sec(100)), gbps(100));
  EXPECT_EQ(flow.alpha(kStart + sec(100)), 1);
}

TEST(ReactionPointTest, PeriodicDecreasesOncePerIntervalWithACNP) {
  const DCQCNParameters p = periodic();
  ReactionPoint flow(p);
  flow.on_cnp(kStart);
  EXPECT_EQ(flow.rate(kStart + us(4)), gbps(100));  // nothing at the CNP itself
  // Four updates of alpha without a further CNP, then the decrease.
  const double alpha = std::pow(255.0 / 256, 4);
  const u64 once = static_cast<u64>(100e9 * (1 - alpha / 2));
  EXPECT_EQ(flow.rate(kStart + us(4) + ns(1)).bps(), once);
  EXPECT_EQ(flow.target(kStart + us(5)), gbps(100));
  for (int i = 0; i < 40; ++i) flow.on_cnp(kStart + us(5) + ns(50 * i));  // they count once
  EXPECT_EQ(flow.rate(kStart + us(8)).bps(), once);
  EXPECT_LT(flow.rate(kStart + us(8) + ns(1)).bps(), once);
  // The target stays where it was, since no increase came in between.
  EXPECT_EQ(flow.target(kStart + us(10)), gbps(100));
}

TEST(ReactionPointTest, RecoversThroughTheStages) {
  const DCQCNParameters p = periodic();
  ReactionPoint flow(p);
  flow.on_cnp(kStart);
  const Time decreased = kStart + us(4) + ns(1);
  const u64 low = flow.rate(decreased).bps();
  const u64 recovered = low / 2 + 50'000'000'000;
  EXPECT_EQ(flow.rate(decreased + us(300) - ps(1)).bps(), low);
  EXPECT_EQ(flow.rate(decreased + us(300)).bps(), recovered);
  // Congestion again: the target is the rate before, from now on.
  flow.on_cnp(decreased + us(310));
  const Time again = decreased + us(400);
  EXPECT_EQ(flow.target(again).bps(), recovered);
  EXPECT_LT(flow.rate(again).bps(), recovered);
  // Fast recovery, then 20 Mb/s once, then 200 Mb/s each time.
  const Time cut = decreased + us(312);
  EXPECT_EQ(flow.target(cut + us(300)).bps(), recovered);
  EXPECT_EQ(flow.target(cut + us(600)).bps(), recovered + 20'000'000);
  EXPECT_EQ(flow.target(cut + us(900)).bps(), recovered + 220'000'000);
  EXPECT_EQ(flow.target(cut + us(1200)).bps(), recovered + 420'000'000);
  // In the end the rate has recovered, except for truncation.
  EXPECT_EQ(flow.target(cut + sec(10)), gbps(100));
  EXPECT_GE(flow.rate(cut + sec(10)).bps(), 99'999'999'999u);
}

TEST(ReactionPointTest, PublishedOneDecreasesAtEachCNP) {
  const DCQCNParameters p;
  ReactionPoint flow(p);
  flow.on_cnp(kStart);
  EXPECT_EQ(flow.rate(kStart), gbps(20));
  EXPECT_EQ(flow.target(kStart), gbps(40));
  EXPECT_EQ(flow.alpha(kStart), 1);
  flow.on_cnp(kStart + us(50));  // no end of any timer before
  EXPECT_EQ(flow.rate(kStart + us(50)), gbps(10));
  EXPECT_EQ(flow.target(kStart + us(50)), gbps(20));
  // K without a CNP: alpha decays; T: the rate recovers half of its loss.
  EXPECT_EQ(flow.alpha(kStart + us(50 + 55)), 255.0 / 256);
  EXPECT_EQ(flow.rate(kStart + us(50 + 55)), gbps(15));
  EXPECT_EQ(flow.rate(kStart + us(50 + 2 * 55)).bps(), 17'500'000'000u);
}

TEST(ReactionPointTest, ACNPTooSoonAfterADecreaseIsNotLookedAt) {
  DCQCNParameters p;
  p.decrease_interval = us(10);
  ReactionPoint flow(p);
  flow.on_cnp(kStart);
  flow.on_cnp(kStart + us(10) - ps(1));
  EXPECT_EQ(flow.rate(kStart + us(10)), gbps(20));
  flow.on_cnp(kStart + us(10));
  EXPECT_EQ(flow.rate(kStart + us(10)), gbps(10));
}

TEST(ReactionPointTest, ByteCounterAndTimerTogetherReachHyperIncrease) {
  DCQCNParameters p;
  p.byte_counter = 1000;
  p.fast_recovery = 2;
  ReactionPoint flow(p);
  flow.on_cnp(kStart);
  flow.on_cnp(kStart);  // target 20 Gb/s, rate 10 Gb/s
  flow.on_sent(999, kStart);
  EXPECT_EQ(flow.rate(kStart), gbps(10));
  flow.on_sent(1, kStart);
  EXPECT_EQ(flow.rate(kStart), gbps(15));
  flow.on_sent(1000, kStart);
  EXPECT_EQ(flow.target(kStart), gbps(20));
  flow.on_sent(5000, kStart);  // B is 7, T is 0: additive
  EXPECT_EQ(flow.target(kStart).bps(), 20'000'000'000u + 5 * 40'000'000);
  const Time later = kStart + us(3 * 55);  // T was 0, 1, 2: additive
  EXPECT_EQ(flow.target(later).bps(), 20'000'000'000u + 8 * 40'000'000);
  EXPECT_EQ(flow.target(later + us(55)).bps(), 20'000'000'000u + 8 * 40'000'000 + 200'000'000);
  // A decrease begins anew.
  flow.on_cnp(later + us(55));
  const Rate target = flow.target(later + us(55));
  flow.on_sent(2000, later + us(55));
  EXPECT_EQ(flow.target(later + us(55)), target);
}

TEST(ReactionPointTest, StaysWithinItsBounds) {
  for (const DCQCNParameters& p : {periodic(), DCQCNParameters{}}) {
    ReactionPoint flow(p);
    PRNG prng(7);
    Time now = kStart;
    for (int i = 0; i < 20'000; ++i) {
      now = now + ns(static_cast<i64>(prng.in(1, 200'000)));
      if (prng.in(0, 2) == 0) flow.on_cnp(now);
      flow.on_sent(prng.in(64, 4096), now);
      const Rate rate = flow.rate(now);
      ASSERT_GE(rate, p.min_rate);
      ASSERT_LE(rate, p.line_rate);
      ASSERT_LE(rate.bps(), flow.target(now).bps() + 1);
      ASSERT_GE(flow.alpha(now), 0);
      ASSERT_LE(flow.alpha(now), 1);
    }
  }
}

TEST(ReactionPointTest, MoreCNPsNeverGiveAHigherRate) {
  const DCQCNParameters p = periodic();
  Rate last = gbps(100);
  for (i64 every_us : {1'000, 300, 100, 30, 10, 4}) {
    ReactionPoint flow(p);
    u64 sum = 0;
    for (i64 t = 0; t < 20'000; ++t) {
      if (t % every_us == 0) flow.on_cnp(kStart + us(t));
      sum += flow.rate(kStart + us(t)).bps() / 20'000;
    }
    EXPECT_LE(sum, last.bps()) << every_us;
    last = Rate::from_bps(sum);
  }
}

TEST(ReactionPointTest, YearsOfSilenceTakeNoTime) {
  const DCQCNParameters p = periodic();
  ReactionPoint flow(p);
  flow.on_cnp(kStart);
  const Time late = kStart + sec(9'000'000);
  EXPECT_GE(flow.rate(late), gbps(99));
  EXPECT_EQ(flow.alpha(late), 0);
  flow.on_cnp(late);
  EXPECT_GE(flow.rate(late + us(5)), gbps(99));  // a single mark after years costs next to nothing
}

TEST(DCQCNParametersTest, RangesAreKept) {
  EXPECT_TRUE(DCQCNParameters{}.valid());
  EXPECT_TRUE(periodic().valid());
  EXPECT_FALSE(DCQCNParameters{.line_rate = Rate::unlimited()}.valid());
  EXPECT_FALSE((DCQCNParameters{.line_rate = gbps(1), .min_rate = gbps(2)}.valid()));
  EXPECT_FALSE(DCQCNParameters{.min_rate = Rate{}}.valid());
  EXPECT_FALSE(DCQCNParameters{.decrease = DCQCNParameters::Decrease::kPeriodic}.valid());
  EXPECT_FALSE(DCQCNParameters{.g = 0}.valid());
  EXPECT_FALSE(DCQCNParameters{.g = 1.1}.valid());
  EXPECT_FALSE(DCQCNParameters{.initial_alpha = -1}.valid());
  EXPECT_FALSE(DCQCNParameters{.alpha_interval = ns(0)}.valid());
  EXPECT_FALSE(DCQCNParameters{.increase_interval = ns(0)}.valid());
  EXPECT_FALSE(DCQCNParameters{.additive_increase = kbps(999)}.valid());
  EXPECT_FALSE(DCQCNParameters{.hyper_increase = Rate{}}.valid());
}

// N flows on one bottleneck of 100 Gb/s: a queue that grows with the excess traffic, and marks as
// RED does. Time advances in microseconds.
struct Bottleneck {
  double queue = 0;  // bytes
  static constexpr double kMin = 100e3, kMax = 400e3, kMost = 0.2;

  void run_us(double bps, double capacity) {
    queue = std::max(0.0, queue + (bps - capacity) / 8 * 1e-6);
  }
  double marking() const {
    if (queue <= kMin) return 0;
    return queue > kMax ? 1 : kMost * (queue - kMin) / (kMax - kMin);
  }
};

TEST(ReactionPointTest, FlowsShareABottleneckFairly) {
  const DCQCNParameters p = {.line_rate = gbps(100), .min_rate = mbps(100)};
  for (u32 flows : {2, 8}) {
    std::vector<ReactionPoint> all(flows, ReactionPoint(p));
    std::vector<double> sent(flows, 0), next_cnp(flows, 0);
    PRNG prng(flows);
    Bottleneck bottleneck;
    constexpr i64 kTime = 200'000, kWarmUp = 50'000;  // us
    for (i64 t = 0; t < kTime; ++t) {
      const Time now = kStart + us(t);
      double sum = 0;
      for (u32 i = 0; i < flows; ++i) {
        const auto rate = static_cast<double>(all[i].rate(now).bps());
        const double bytes = rate / 8 * 1e-6;
        sum += rate;
        if (t >= kWarmUp) sent[i] += bytes;
        all[i].on_sent(static_cast<u64>(bytes), now);
        // At least one of the packets of this microsecond is marked, and the last CNP is long ago.
        const double marked = 1 - std::pow(1 - bottleneck.marking(), bytes / 1000);
        if (static_cast<double>(t) < next_cnp[i] || !prng.chance(marked)) continue;
        all[i].on_cnp(now);
        next_cnp[i] = static_cast<double>(t) + 50;
      }
      bottleneck.run_us(sum, 100e9);
    }
    double total = 0, squares = 0;
    for (const double bytes : sent) total += bytes, squares += bytes * bytes;
    EXPECT_GT(total * total / (squares * flows), 0.97) << flows;  // Jain's index
    EXPECT_GT(total * 8 / ((kTime - kWarmUp) * 1e-6), 85e9) << flows;
    EXPECT_LT(bottleneck.queue, 2e6) << flows;
  }
}

TEST(ReactionPointTest, TellsThatADecreaseIsToCome) {
  const DCQCNParameters parameters = periodic();
  ReactionPoint point(parameters);
  EXPECT_FALSE(point.will_slow_down());
  point.on_cnp(kStart);
  EXPECT_EQ(point.rate(kStart), gbps(100));
  EXPECT_TRUE(point.will_slow_down());
  EXPECT_LT(point.rate(kStart + ns(4001)), gbps(100));
  EXPECT_FALSE(point.will_slow_down());
}

}  // namespace
}  // namespace verbena
