#include "transport/poll_habit.h"

#include <gtest/gtest.h>

namespace verbena {
namespace {

class PollHabitTest : public testing::Test {
 protected:
  // So many WRITEs between two polls; whether one of them may wait.
  bool post(u32 writes) {
    bool any = false;
    for (u32 i = 0; i < writes; ++i) {
      now = now + us(1);
      any |= habit.may_wait(now);
    }
    return any;
  }
  void poll_after(Duration pause) {
    now = now + pause;
    habit.on_waited(PollHabit::End::kPoll, now, 0);
    habit.on_poll();
  }
  void polls_soon_for(u32 runs) {
    for (u32 i = 0; i < runs; ++i) {
      poll_after(us(1));
      EXPECT_TRUE(post(2));
    }
  }
  // Until one may wait.
  u32 runs_needed() {
    for (u32 runs = 0;; ++runs) {
      if (post(3)) return runs;
      habit.on_poll();
    }
  }

  PollHabit habit;
  Time now;
};

TEST_F(PollHabitTest, TheFirstNeverWaits) {
  for (u32 i = 0; i < 100; ++i) {
    EXPECT_FALSE(post(1));
    poll_after(us(1));
  }
  EXPECT_EQ(runs_needed(), PollHabit::kRuns);
  poll_after(us(1));
  EXPECT_FALSE(post(1));
  EXPECT_TRUE(post(1));
}

TEST_F(PollHabitTest, WithoutPollsNoneWaits) { EXPECT_FALSE(post(10'000)); }

TEST_F(PollHabitTest, WhatHasWaitedForLongCostsTrust) {
  u32 needed = PollHabit::kRuns;
  for (u32 i = 0; i < 20; ++i) {
    EXPECT_EQ(runs_needed(), needed);
    poll_after(us(200));
    needed = std::min(needed * 2, PollHabit::kMostRuns);
  }
  EXPECT_EQ(needed, PollHabit::kMostRuns);
}

TEST_F(PollHabitTest, TrustComesBack) {
  (void)runs_needed();
  for (u32 i = 0; i < 3; ++i) {
    poll_after(us(200));
    (void)runs_needed();
  }
  polls_soon_for(PollHabit::kMostCredit);
  for (u32 i = 0; i < PollHabit::kMostCredit / PollHabit::kLate; ++i) {
    poll_after(us(200));
    EXPECT_TRUE(post(2)) << "now and then is forgiven";
  }
  poll_after(us(200));
  EXPECT_EQ(runs_needed(), 2 * PollHabit::kRuns);
}

TEST_F(PollHabitTest, WhoIsSeldomLateKeepsItsTrust) {
  (void)runs_needed();
  polls_soon_for(PollHabit::kLate);
  for (u32 i = 0; i < 1000; ++i) {
    poll_after(us(200));
    EXPECT_TRUE(post(2));
    polls_soon_for(PollHabit::kLate);
  }
}

TEST_F(PollHabitTest, APostMayBeLateNowAndThen) {
  (void)runs_needed();
  for (u32 i = 0; i < 10; ++i) {
    post(PollHabit::kManyPosts);
    now = now + us(200);
    EXPECT_FALSE(habit.on_waited(PollHabit::End::kPost, now, 0));
    EXPECT_TRUE(post(1));
  }
  now = now + us(200);
  EXPECT_FALSE(habit.on_waited(PollHabit::End::kPost, now, 0));
  EXPECT_FALSE(post(10)) << "twice in a row";
}

TEST_F(PollHabitTest, ToWaitForOurOwnCopyIsNoFault) {
  (void)runs_needed();
  habit.on_copied(1u << 20);
  poll_after(us(200));
  EXPECT_TRUE(post(2));
}

}  // namespace
}  // namespace verbena
