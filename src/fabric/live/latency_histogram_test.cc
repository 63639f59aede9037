#include "fabric/live/latency_histogram.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

TEST(LatencyHistogramTest, OfNothingIsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile(50), Duration{});
  EXPECT_EQ(histogram.longest(), Duration{});
}

TEST(LatencyHistogramTest, PercentilesAreKnownToASixteenth) {
  LatencyHistogram histogram;
  for (i64 i = 1; i <= 1000; ++i) histogram.add(ns(i * 100));
  EXPECT_EQ(histogram.count(), 1000u);
  EXPECT_EQ(histogram.longest(), us(100));
  EXPECT_EQ(histogram.percentile(100), us(100));
  for (const u32 percent : {1u, 10u, 50u, 99u}) {
    const double exact = percent * 1000.0;  // in ns
    const double found = static_cast<double>(histogram.percentile(percent).ns());
    EXPECT_GE(found, exact) << percent;
    EXPECT_LE(found, exact * 17 / 16) << percent;
  }
}

TEST(LatencyHistogramTest, WhatIsShortIsExactAndWhatIsLongFindsPlace) {
  LatencyHistogram histogram;
  histogram.add(ns(7));
  EXPECT_EQ(histogram.percentile(50), ns(7));
  histogram.add(sec(100'000));
  EXPECT_EQ(histogram.longest(), sec(100'000));
}

}  // namespace
}  // namespace verbena::fabric
