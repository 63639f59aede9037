#include "base/time.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

TEST(TimeTest, UnitsArePicoseconds) {
  EXPECT_EQ(ps(1).ps(), 1);
  EXPECT_EQ(ns(1).ps(), 1'000);
  EXPECT_EQ(us(1).ps(), 1'000'000);
  EXPECT_EQ(ms(1).ps(), 1'000'000'000);
  EXPECT_EQ(sec(1).ps(), 1'000'000'000'000);
  EXPECT_EQ(us(3).ns(), 3'000);
  EXPECT_DOUBLE_EQ(ms(2500).seconds(), 2.5);
}

TEST(TimeTest, DurationsAddScaleAndCompare) {
  EXPECT_EQ(us(1) + ns(500), ns(1500));
  EXPECT_EQ(us(1) - ns(500), ns(500));
  EXPECT_EQ(ns(7) * 3, ns(21));
  EXPECT_EQ(ns(21) / 3, ns(7));
  EXPECT_LT(ns(999), us(1));
  EXPECT_LT(ns(-1), Duration());
}

TEST(TimeTest, PointsAndDurations) {
  const Time t = Time::from_ns(100);
  EXPECT_EQ(t.ps(), 100'000);
  EXPECT_EQ((t + ns(5)).ns(), 105);
  EXPECT_EQ((t - ns(5)).ns(), 95);
  EXPECT_EQ(t - Time::from_ns(40), ns(60));
  EXPECT_LT(t, Time::never());
  EXPECT_EQ(Time(), Time::from_ps(0));
}

}  // namespace
}  // namespace verbena
