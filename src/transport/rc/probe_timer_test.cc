#include "transport/rc/probe_timer.h"

#include <gtest/gtest.h>

#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;

// A packet answered after `round_trip`.
void exchange(ProbeTimer& timer, u32 psn, Duration round_trip) {
  timer.on_sent(PSN(psn), kStart);
  timer.on_acknowledged(PSN(psn + 1), kStart + round_trip);
}

TEST(ProbeTimerTest, WithoutAFloorThereAreNoProbes) {
  ProbeTimer timer(std::nullopt);
  exchange(timer, 1, us(10));
  EXPECT_EQ(timer.next(kStart), Time::never());
}

TEST(ProbeTimerTest, BeforeAnyRoundTripItIsPatient) {
  const ProbeTimer timer(us(100));
  EXPECT_EQ(timer.next(kStart), kStart + us(100) * ProbeTimer::kUnmeasured);
}

TEST(ProbeTimerTest, TheFirstRoundTripCountsThreefold) {  // SRTT + 4 * RTT / 2
  ProbeTimer timer(us(1));
  exchange(timer, 1, us(100));
  EXPECT_EQ(timer.timeout(), us(300));
}

TEST(ProbeTimerTest, SteadyRoundTripsBringItToOne) {
  ProbeTimer timer(us(1));
  for (u32 i = 0; i < 100; ++i) exchange(timer, i, us(100));
  EXPECT_GE(timer.timeout(), us(100));
  EXPECT_LE(timer.timeout(), us(101));
}

TEST(ProbeTimerTest, UnsteadyOnesKeepItAboveThem) {
  ProbeTimer timer(us(1));
  for (u32 i = 0; i < 100; ++i) exchange(timer, i, us(i % 2 == 0 ? 50 : 150));
  EXPECT_GT(timer.timeout(), us(200));
  EXPECT_LT(timer.timeout(), us(400));
}

TEST(ProbeTimerTest, LiesBetweenFloorAndCeiling) {
  ProbeTimer timer(ms(1));
  exchange(timer, 1, us(3));
  EXPECT_EQ(timer.timeout(), ms(1));
  for (u32 i = 2; i < 50; ++i) exchange(timer, i, sec(100));
  EXPECT_EQ(timer.timeout(), ProbeTimer::kCeiling);
}

TEST(ProbeTimerTest, WaitsDoubleAndEnd) {
  ProbeTimer timer(us(100));
  exchange(timer, 1, us(1));
  Duration wait = us(100);
  Time at = kStart;
  for (u32 i = 0; i < ProbeTimer::kMaxProbes; ++i) {
    at = at + wait;
    wait = wait * 2;
    ASSERT_EQ(timer.next(kStart), at) << i;
    timer.on_probe();
  }
  EXPECT_EQ(timer.next(kStart), Time::never());
  timer.on_acknowledged(PSN(2), kStart);  // the peer has spoken
  EXPECT_EQ(timer.next(kStart), kStart + us(100));
}

TEST(ProbeTimerTest, TheFloorIsNotForAPeerThatHasJustAnswered) {
  ProbeTimer timer(ms(1));
  timer.on_probe_answered();
  EXPECT_EQ(timer.timeout(), ms(1));  // nothing measured
  exchange(timer, 1, us(10));
  EXPECT_EQ(timer.timeout(), ms(1));
  timer.on_probe_answered();
  EXPECT_EQ(timer.timeout(), us(30));
  timer.on_probe();
  EXPECT_EQ(timer.timeout(), ms(1));
}

TEST(ProbeTimerTest, WhatIsSentTwiceMeasuresNothing) {
  ProbeTimer timer(us(1));
  exchange(timer, 1, us(10));
  const Duration before = timer.timeout();
  timer.on_sent(PSN(2), kStart);
  timer.on_resent();
  timer.on_acknowledged(PSN(3), kStart + ms(5));
  EXPECT_EQ(timer.timeout(), before);
}

TEST(ProbeTimerTest, MeasuresOnePacketAtATimeAndAcrossTheWrap) {
  ProbeTimer timer(us(1));
  timer.on_sent(PSN(0xffffff), kStart);
  timer.on_sent(PSN(0), kStart + us(90));                 // not measured
  timer.on_acknowledged(PSN(0xffffff), kStart + us(91));  // not yet
  timer.on_acknowledged(PSN(1), kStart + us(100));
  EXPECT_EQ(timer.timeout(), us(300));
}

}  // namespace
}  // namespace verbena
