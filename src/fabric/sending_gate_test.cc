#include "fabric/sending_gate.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

// Sends as soon as the gate lets it, frames of 1000 bytes. Returns when the last one left.
Time time_of_frames(SendingGate gate, u32 frames) {
  Time now;
  for (u32 i = 0; i < frames; ++i) {
    now = std::max(now, gate.next());
    gate.on_sent(1000, now);
  }
  return now;
}

TEST(SendingGateTest, WithoutLimitsItIsOpen) {
  EXPECT_EQ(time_of_frames(SendingGate({}, {}), 1000), Time());
}

// 10 Gb/s are 800 ns for each frame; the burst of 50 goes at once.
TEST(SendingGateTest, AFunctionSendsItsBurstAndThenItsRate) {
  const SendingGate gate({.rate = gbps(10), .burst_bytes = 50'000}, {});
  EXPECT_EQ(time_of_frames(gate, 51), Time());
  EXPECT_EQ(time_of_frames(gate, 52), Time() + ns(800));
  EXPECT_EQ(time_of_frames(gate, 1051), Time() + ns(800) * 1000);
}

TEST(SendingGateTest, AFunctionThatPausedHasItsBurstAgain) {
  SendingGate gate({.rate = gbps(10), .burst_bytes = 2000}, {});
  for (u32 i = 0; i < 3; ++i) gate.on_sent(1000, Time());
  EXPECT_EQ(gate.next(), Time() + ns(800));
  gate.on_sent(1000, Time() + us(100));
  EXPECT_EQ(gate.next(), Time() + us(100));
}

TEST(SendingGateTest, EncryptionTakesItsTimeOfEachPacketAndByte) {
  const SendingGate gate({}, {.overhead_bytes = 40, .packet = ns(450), .rate = gbps(8)});
  EXPECT_EQ(time_of_frames(gate, 101), Time() + (ns(450) + ns(1000)) * 100);
}

TEST(SendingGateTest, TheSlowerOneCounts) {
  const FunctionConfig function{.rate = gbps(1), .burst_bytes = 1};
  const EncryptionConfig encryption{.overhead_bytes = 40, .packet = ns(450)};
  EXPECT_EQ(time_of_frames(SendingGate(function, encryption), 101),
            time_of_frames(SendingGate(function, {}), 101));
}

}  // namespace
}  // namespace verbena::fabric
