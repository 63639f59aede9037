#include "congestion/presets.h"

#include <gtest/gtest.h>

#include "congestion/congestion_control.h"

namespace verbena {
namespace {

TEST(CongestionPresetsTest, AllAreValidAtEveryLineRate) {
  for (const std::string_view name : congestion_names())
    for (const Rate line_rate : {mbps(1), mbps(100), gbps(1), gbps(40), gbps(100), gbps(800)}) {
      const std::optional<CongestionParameters> parameters = congestion_named(name, line_rate);
      ASSERT_TRUE(parameters) << name;
      EXPECT_TRUE(parameters->valid()) << name << ' ' << line_rate.bps();
      if (!parameters->controls()) continue;
      CongestionControl control(*parameters);
      EXPECT_EQ(control.rate(Time()), line_rate) << name;  // all start with it
    }
}

// 100 Gb/s * (25 us + 50 us) = 937,500 bytes: 228.9 packets of 4096.
TEST(CongestionPresetsTest, SwiftStartsWithWhatItsLongestTargetHolds) {
  const auto parameters = congestion_named("swift", gbps(100));
  CongestionControl control(*parameters);
  EXPECT_NEAR(static_cast<double>(control.window(Time())), 937'500, 1);
}

TEST(CongestionPresetsTest, WhatHasNoNameIsNone) {
  for (const std::string_view name : {"", "DCQCN", "of", "dcqcn "})
    EXPECT_FALSE(congestion_named(name, gbps(1))) << name;
}

}  // namespace
}  // namespace verbena
