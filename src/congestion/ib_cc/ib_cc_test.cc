#include "congestion/ib_cc/ib_cc.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

const IBCCParameters kUsual{.line_rate = gbps(100)};

TEST(IBCC, EachBECNAddsAPacketsTimeOfDelay) {
  IBCC control(kUsual);
  EXPECT_EQ(control.rate(Time()), gbps(100));
  for (u32 i = 1; i <= 200; ++i) {
    control.on_cnp(Time());
    EXPECT_EQ(control.rate(Time()).bps(), u64{100'000'000'000} / (1 + std::min(i, 127u))) << i;
  }
}

TEST(IBCC, TheTimerLowersTheIndexToItsLeast) {
  IBCCParameters parameters = kUsual;
  parameters.ccti_min = 1;
  parameters.ccti_timer = us(10);
  IBCC control(parameters);
  EXPECT_EQ(control.rate(Time()), gbps(50));
  const Time start = Time::from_ns(5'000);
  for (u32 i = 0; i < 3; ++i) control.on_cnp(start);
  EXPECT_EQ(control.rate(start + ns(9'999)), gbps(20));
  EXPECT_EQ(control.rate(start + us(10)), gbps(25));
  EXPECT_EQ(control.rate(start + us(29)).bps(), u64{100'000'000'000} / 3);
  EXPECT_EQ(control.rate(start + us(30)), gbps(50));
  EXPECT_EQ(control.rate(start + sec(1)), gbps(50));
}

// The timer starts with the first BECN and continues while there are others.
TEST(IBCC, BECNsDoNotHoldTheTimerBack) {
  IBCCParameters parameters = kUsual;
  parameters.ccti_timer = us(10);
  IBCC control(parameters);
  control.on_cnp(Time::from_ns(3'000));
  control.on_cnp(Time::from_ns(12'000));
  EXPECT_EQ(control.rate(Time::from_ns(12'999)).bps(), u64{100'000'000'000} / 3);
  EXPECT_EQ(control.rate(Time::from_ns(13'000)), gbps(50));
  EXPECT_EQ(control.rate(Time::from_ns(23'000)), gbps(100));
}

TEST(IBCC, ParametersHaveRanges) {
  EXPECT_TRUE(kUsual.valid());
  for (const auto& change : {+[](IBCCParameters& p) { p.ccti_increase = 0; },
                             +[](IBCCParameters& p) { p.ccti_limit = 128; },
                             +[](IBCCParameters& p) { p.ccti_min = p.ccti_limit + 1; },
                             +[](IBCCParameters& p) { p.ccti_timer = ns(1023); },
                             +[](IBCCParameters& p) { p.cct_step = 0; },
                             +[](IBCCParameters& p) { p.line_rate = Rate::unlimited(); }}) {
    IBCCParameters parameters = kUsual;
    change(parameters);
    EXPECT_FALSE(parameters.valid());
  }
}

}  // namespace
}  // namespace verbena
