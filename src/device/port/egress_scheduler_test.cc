#include "device/port/egress_scheduler.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

constexpr u32 kQuantum = 32;
constexpr Time kNow = Time::from_ns(1000);

struct EgressSchedulerTest : ::testing::Test {
  // Sends a packet of the QP whose turn it is.
  QueuePair* send() {
    const EgressScheduler::Turn turn = scheduler.turn(now);
    if (turn.qp != nullptr) scheduler.on_sent(turn, 1);
    return turn.qp;
  }
  QueuePair* current() { return scheduler.turn(now).qp; }
  QueuePair a{{}, {}}, b{{}, {}}, c{{}, {}};
  EgressScheduler scheduler{{.run_packets = kQuantum}};
  Time now = kNow;
};

TEST_F(EgressSchedulerTest, NobodyAtFirst) { EXPECT_EQ(current(), nullptr); }

TEST_F(EgressSchedulerTest, RunsOfOneQuantumInTurn) {
  scheduler.activate(a);
  scheduler.activate(b);
  scheduler.activate(c);
  scheduler.activate(a);  // already waits
  for (int round = 0; round < 3; ++round)
    for (QueuePair* const qp : {&a, &b, &c})
      for (u32 i = 0; i < kQuantum; ++i) ASSERT_EQ(send(), qp) << round << ' ' << i;
}

TEST_F(EgressSchedulerTest, AloneItKeepsSending) {
  scheduler.activate(a);
  for (u32 i = 0; i < 5 * kQuantum; ++i) ASSERT_EQ(send(), &a);
}

TEST_F(EgressSchedulerTest, ATrainCountsAsItsPackets) {
  scheduler.activate(a);
  scheduler.activate(b);
  scheduler.on_sent(scheduler.turn(now), kQuantum - 1);
  EXPECT_EQ(current(), &a);
  scheduler.on_sent(scheduler.turn(now), 16);
  EXPECT_EQ(current(), &b);
}

TEST_F(EgressSchedulerTest, AnIdleOneLosesItsTurnAndComesLastAgain) {
  scheduler.activate(a);
  scheduler.activate(b);
  EXPECT_EQ(send(), &a);
  scheduler.on_idle(scheduler.turn(now));
  EXPECT_EQ(current(), &b);
  scheduler.activate(a);
  for (u32 i = 0; i < kQuantum; ++i) ASSERT_EQ(send(), &b);  // the turn starts from 0
  EXPECT_EQ(current(), &a);
}

TEST_F(EgressSchedulerTest, RemovedInItsTurnLeavesAFullTurnToTheNext) {
  scheduler.activate(a);
  scheduler.activate(b);
  scheduler.activate(c);
  EXPECT_EQ(send(), &a);
  scheduler.remove(a);
  for (u32 i = 0; i < kQuantum; ++i) ASSERT_EQ(send(), &b);
  EXPECT_EQ(send(), &c);
  scheduler.remove(b);  // not its turn: the turn goes on
  for (u32 i = 1; i < kQuantum; ++i) ASSERT_EQ(send(), &c);
  scheduler.remove(c);
  EXPECT_EQ(current(), nullptr);
}

// A packet takes its time to leave, and the next turn comes after that.
TEST_F(EgressSchedulerTest, WhoseTimeHasComeGoesBeforeTheOneThatSentLast) {
  EgressScheduler one{{.run_packets = 1}};
  one.reserve(3);
  one.activate(a);
  one.hold(b, now + ns(50));
  EXPECT_EQ(one.turn(now).qp, &a);
  one.on_sent(one.turn(now), 1);
  one.activate(a);  // it is acknowledged something
  one.activate(c);  // it is new
  now = now + ns(83);
  for (QueuePair* const qp : {&c, &b, &a}) {
    ASSERT_EQ(one.turn(now).qp, qp);
    one.on_sent(one.turn(now), 1);
  }
  one.remove(a);  // which has sent last
  EXPECT_EQ(one.turn(now).qp, &c);
}

}  // namespace
}  // namespace verbena
