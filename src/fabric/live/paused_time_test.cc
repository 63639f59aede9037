#include "fabric/live/paused_time.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

Time at(i64 microseconds) { return Time() + us(microseconds); }

TEST(PausedTimeTest, APauseLastsUntilItIsEndedOrOver) {
  PausedTime paused;
  paused.on_pause(3, us(50), at(10));
  EXPECT_EQ(paused.total(at(20)), us(10));
  paused.on_pause(3, {}, at(30));
  EXPECT_EQ(paused.total(at(100)), us(20));
  paused.on_pause(3, us(50), at(200));
  EXPECT_EQ(paused.total(at(1000)), us(70));
  EXPECT_EQ(paused.pauses(), 2u);
}

TEST(PausedTimeTest, PrioritiesThatArePausedAtOnceCountOnce) {
  PausedTime paused;
  paused.on_pause(3, us(50), at(10));
  paused.on_pause(4, us(50), at(20));
  paused.on_pause(3, {}, at(30));
  EXPECT_EQ(paused.total(at(40)), us(30));
  paused.on_pause(4, {}, at(50));
  EXPECT_EQ(paused.total(at(90)), us(40));
}

}  // namespace
}  // namespace verbena::fabric
