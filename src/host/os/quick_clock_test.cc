#include "host/os/quick_clock.h"

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

// By then it knows how fast the processor's counter counts.
TEST(QuickClockTest, StaysTheHostsWhileTimeGoesBy) {
  QuickClock clock;
  Time before = clock.now();
  const Time end = before + ms(100);
  u32 late = 0, looks = 0;
  for (; before < end; ++looks) {
    const Time earliest = monotonic_now() - us(1);
    const Time now = clock.now();
    ASSERT_GE(now, before);
    ASSERT_LE(now, monotonic_now());
    late += now < earliest ? 1 : 0;  // this thread may have been interrupted within now()
    before = now;
  }
  EXPECT_LE(late, looks / 1000);
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
