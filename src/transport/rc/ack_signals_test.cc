#include "transport/rc/ack_signals.h"

#include <gtest/gtest.h>

#include "tests/support/clock.h"

namespace verbena {
namespace {

using test::kStart;
constexpr u32 kMTU = 1000;

// TIMELY reports which round trip it received: one segment is one packet.
struct AckSignalsTest : ::testing::Test {
  void acknowledge(u32 before, u32 unacked, Time at) {
    signals.on_acknowledged({PSN(before), PSN(unacked), 0, kMTU}, nullptr, at);
  }
  double rate() { return static_cast<double>(control.rate(kStart).bps()); }
  CongestionParameters parameters{
      .algorithm = TIMELYParameters{.line_rate = gbps(10), .segment_bytes = kMTU}};
  CongestionControl control{parameters};
  AckSignals signals{control, 8};
};

TEST_F(AckSignalsTest, TheRoundTripIsOfTheNewest) {
  signals.on_sent({PSN(5), 1}, kStart - sec(1));
  signals.on_sent({PSN(6), 1}, kStart - ms(1));
  acknowledge(5, 7, kStart);
  EXPECT_NEAR(rate(), 10e9 * (1 - 0.8 * (1 - 0.5)), 1);  // twice t_high
}

TEST_F(AckSignalsTest, WhatWasSentTwiceTellsNothing) {
  signals.on_sent({PSN(5), 1}, kStart - sec(1));
  signals.on_resent(PSN(5), 1);
  acknowledge(5, 6, kStart);
  EXPECT_EQ(rate(), 10e9);
}

TEST_F(AckSignalsTest, OfAREADTheFirstResponseTells) {
  signals.on_sent({PSN(0xfffffe), 4}, kStart - ms(1));
  acknowledge(0xfffffe, 0xffffff, kStart);
  const double once = rate();
  EXPECT_LT(once, 10e9);
  acknowledge(0xffffff, 2, kStart);
  EXPECT_EQ(rate(), once);
}

// Across the end of the PSNs, too.
TEST_F(AckSignalsTest, TheRoomGrowsWithWhatIsInFlight) {
  signals.on_sent({PSN(0xfffffc), 1}, kStart - ms(1));
  for (u32 i = 1; i < 100; ++i) signals.on_sent({PSN(0xfffffc + i), 1, i}, kStart);
  acknowledge(0xfffffc, 0xfffffd, kStart);
  EXPECT_NEAR(rate(), 10e9 * (1 - 0.8 * (1 - 0.5)), 1);  // as one that took 1 ms
}

TEST(AckSignalsWindowTest, IsInPacketsAndNeverNone) {
  CongestionParameters parameters{
      .algorithm = ConstantRateParameters{},
      .window = {.kind = WindowParameters::Kind::kFixed, .bytes = 2001}};
  CongestionControl control(parameters);
  AckSignals signals(control, 8);
  EXPECT_EQ(signals.window_packets(1000, kStart), 3u);  // fewer bytes than that are in 2 of them
  EXPECT_EQ(signals.window_packets(4096, kStart), 1u);
  parameters.window.kind = WindowParameters::Kind::kNone;
  CongestionControl unbounded(parameters);
  EXPECT_EQ(AckSignals(unbounded, 8).window_packets(1, kStart), ~u32{0});
}

}  // namespace
}  // namespace verbena
