#include "fabric/port.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

// ArrivalRankTest: a port that began to send its frame, of 80 ns, at 10 us.
struct ArrivalRankTest : ::testing::Test {
  static constexpr Time kNow = Time::from_ns(10'000);
  u64 idle(Duration since) const { return ArrivalRank::of(port(kNow), kNow, since); }
  u64 busy(Duration busy) const { return ArrivalRank::of(port(kNow - busy), kNow, us(5)); }
  Port port(Time busy_since) const {
    Port port;
    port.delay = us(1);
    port.free_at = kNow + ns(80);
    port.busy_since = busy_since;
    return port;
  }
};

TEST_F(ArrivalRankTest, WhatWasSentFirstComesFirst) {
  Port far = port(kNow);
  far.delay = us(2);
  EXPECT_LT(ArrivalRank::of(far, kNow, us(1)), idle(us(3)));
  EXPECT_EQ(ArrivalRank::way_of(idle(us(1))), us(1) + ns(80));
  far.delay = ms(5);
  EXPECT_LT(ArrivalRank::of(far, kNow, us(1)), idle(us(3)));
}

TEST_F(ArrivalRankTest, ThenWhatWasKnownFirst) {
  EXPECT_LT(idle(us(2)), idle(us(1)));
  EXPECT_LT(idle(ArrivalRank::kLongest), idle(ArrivalRank::kLongest - ps(1)));
  EXPECT_EQ(idle(sec(1)), idle(ArrivalRank::kLongest));
}

TEST_F(ArrivalRankTest, ABusyPortKnewItWhenItsLastFrameBegan) {
  EXPECT_LT(idle(ns(80)), busy(ns(80)));
  EXPECT_LT(busy(sec(1)), idle(ns(79)));
  EXPECT_LT(busy(ns(80)), busy(ns(160)));
}

// It has sent for 300 ns in all, and its last frame, of 80 ns, is out at 1 us.
TEST(Port, TheFrameOnTheWireCountsAsFarAsItIsOut) {
  Port port;
  port.rate = gbps(100);
  port.busy = ns(300);
  port.free_at = Time::from_ns(1000);
  EXPECT_EQ(port.busy_time(Time::from_ns(2000)), ns(300));
  EXPECT_EQ(port.busy_time(Time::from_ns(1000)), ns(300));
  EXPECT_EQ(port.busy_time(Time::from_ns(940)), ns(240));
  EXPECT_EQ(port.busy_time(Time::from_ns(100)), ns(0));
  EXPECT_EQ(port.bytes_to_send(Time::from_ns(1000)), 0u);
  port.last_bytes = 1000;
  EXPECT_EQ(port.bytes_to_send(Time::from_ns(940)), 750u);
  // The gap comes before the frame, so that no more of the frame is left than it has.
  port.last_bytes = 700;
  EXPECT_EQ(port.bytes_to_send(Time::from_ns(940)), 700u);
}

// One that never stops is busy all the time, and not longer.
TEST(Port, IsBusyForNoLongerThanTheTimeThatIsMeasured) {
  Port port;
  port.busy = ns(1080);
  port.free_at = Time::from_ns(1080);
  for (const i64 at : {0, 1, 500, 1000, 1079, 1080})
    EXPECT_EQ(port.busy_time(Time::from_ns(at)), ns(at));
}

}  // namespace
}  // namespace verbena::fabric
