#include "host/quick_clock.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

TEST(QuickClockTest, IsTheHostsWithinAMicrosecond) {
  QuickClock clock;
  Time before = clock.now();
  for (int i = 0; i < 100'000; ++i) {
    const Time earliest = monotonic_now() - us(1);
    const Time now = clock.now();
    ASSERT_GE(now, before);
    ASSERT_GE(now, earliest);
    ASSERT_LE(now, monotonic_now());
    before = now;
  }
}

TEST(QuickClockTest, GoesOnWhereItWasReadExactly) {
  QuickClock clock;
  for (int i = 0; i < 1000; ++i) {
    const Time exactly = clock.exactly_now();
    EXPECT_EQ(clock.last(), exactly);
    EXPECT_GE(clock.now(), exactly);
  }
}

}  // namespace
}  // namespace verbena::host
