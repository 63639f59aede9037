#include "host/links/collecting_policy.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

constexpr u64 kBurst = 60 << 10;

class CollectingPolicyTest : public testing::Test {
 protected:
  // Each burst is taken as it comes.
  void stream(u64 octets) {
    for (u64 taken = 0; taken < octets; taken += kBurst) {
      now_ = now_ + us(15);
      policy_.on_taken(kBurst, now_);
      policy_.on_empty(now_);
      if (policy_.collects()) return;
    }
  }
  // Returns how much the socket holds when the policy takes it. At most `window` arrives before
  // that.
  u64 collect(u64 window = ~0ull) {
    for (u64 queued = 0;; now_ = now_ + us(15)) {
      if (queued + kBurst <= window) queued += kBurst;
      if (policy_.may_take(queued, now_)) return queued;
    }
  }
  void take(u64 octets) {
    policy_.on_taken(octets, now_);
    policy_.on_empty(now_);
  }

  CollectingPolicy policy_{CollectingPolicy::kLeastBuffer};
  Time now_ = Time::from_ns(1'000'000'000);
};

TEST_F(CollectingPolicyTest, ADenseStreamCollectsAgainAndAgain) {
  EXPECT_FALSE(policy_.collects());
  stream(2 << 20);
  for (u32 i = 0; i < 3; ++i) {
    ASSERT_TRUE(policy_.collects()) << i;
    const u64 collected = collect();
    EXPECT_GE(collected, CollectingPolicy::kMost);
    EXPECT_FALSE(policy_.collects());
    take(collected);
  }
}

TEST_F(CollectingPolicyTest, WhatComesSlowlyIsTakenAsItComes) {
  for (u32 i = 0; i < 1000; ++i) {
    now_ = now_ + us(100);  // 0.6 GB/s
    take(kBurst);
    ASSERT_FALSE(policy_.collects());
  }
}

TEST_F(CollectingPolicyTest, NothingCollectsInASmallBuffer) {
  policy_ = CollectingPolicy(CollectingPolicy::kLeastBuffer - 1);
  stream(8 << 20);
  EXPECT_FALSE(policy_.collects());
}

TEST_F(CollectingPolicyTest, ASenderWhoseWindowIsSmallerSoonWaitsNoMore) {
  constexpr u64 kWindow = 1 << 20;
  stream(2 << 20);
  const Time before = now_;
  EXPECT_LE(collect(kWindow), kWindow);
  EXPECT_GE(now_ - before, CollectingPolicy::kPatience);
  stream(2 << 20);
  for (u32 i = 0; i < 3; ++i) {
    ASSERT_TRUE(policy_.collects()) << i;
    const u64 collected = collect(kWindow);
    EXPECT_LT(collected, kWindow);
    EXPECT_GE(collected, CollectingPolicy::kLeast);
    take(collected);
  }
}

TEST_F(CollectingPolicyTest, WhatBecomesSlowIsNotKeptForLong) {
  stream(2 << 20);
  ASSERT_TRUE(policy_.collects());
  const Time before = now_;
  u64 queued = 0;
  while (!policy_.may_take(queued += kBurst, now_)) now_ = now_ + us(60);
  EXPECT_LT(queued, CollectingPolicy::kMost);
  EXPECT_LE(now_ - before, CollectingPolicy::kLongest + us(60));
}

TEST_F(CollectingPolicyTest, WhoAlwaysWaitsIsLeftInPeaceForLongerAndLonger) {
  u32 waits = 0;
  const Time end = now_ + ms(100);
  while (now_ < end) {
    stream(2 << 20);
    if (!policy_.collects()) continue;
    ++waits;
    collect(128 << 10);
  }
  EXPECT_LE(waits, 10u);
  EXPECT_GE(waits, 5u);
}

TEST_F(CollectingPolicyTest, AfterABreakSmallTrafficIsTakenAsItComes) {
  stream(2 << 20);
  (void)collect();
  take(kBurst);
  policy_.stop();
  now_ = now_ + CollectingPolicy::kBreak;
  policy_.on_empty(now_);
  EXPECT_FALSE(policy_.collects());
}

}  // namespace
}  // namespace verbena::host
