#include "host/progress/holding_policy.h"

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

class HoldingPolicyTest : public testing::Test {
 protected:
  void call_often() {
    for (u32 i = 0; i < 20; ++i) policy_.on_call(now_ = now_ + us(1));
  }

  HoldingPolicy policy_;
  Time now_ = Time::from_ns(1'000'000'000);
};

TEST_F(HoldingPolicyTest, HoldsOnlyForWhoCallsAgainAndAgain) {
  policy_.on_call(now_);
  EXPECT_FALSE(policy_.may_hold(now_));
  call_often();
  EXPECT_TRUE(policy_.may_hold(now_));
  policy_.on_call(now_ = now_ + us(11));
  EXPECT_FALSE(policy_.may_hold(now_));
}

TEST_F(HoldingPolicyTest, APauseIsForgivenToWhoHasCalledForLong) {
  for (u32 i = 0; i < 5; ++i) call_often();
  for (u32 i = 0; i < 3; ++i) {
    policy_.on_call(now_ = now_ + sec(1));
    EXPECT_TRUE(policy_.may_hold(now_)) << i;
  }
  policy_.on_call(now_ = now_ + sec(1));
  EXPECT_FALSE(policy_.may_hold(now_));
}

TEST_F(HoldingPolicyTest, TheTimeOfTheCallItselfIsNoPause) {
  for (u32 i = 0; i < 20; ++i) {
    policy_.on_call(now_ = now_ + us(1));
    policy_.on_return(now_ = now_ + us(50));
  }
  EXPECT_TRUE(policy_.may_hold(now_));
}

TEST_F(HoldingPolicyTest, WhoCallsOftenDoesSoUntilItPauses) {
  EXPECT_FALSE(policy_.is_called_often(now_));
  call_often();
  EXPECT_TRUE(policy_.is_called_often(now_ + us(10)));
  EXPECT_FALSE(policy_.is_called_often(now_ + us(11)));
}

TEST_F(HoldingPolicyTest, WhoPostsWithoutAPollPostsOn) {
  for (u32 i = 0; i < 15; ++i) policy_.on_request(now_);
  EXPECT_FALSE(policy_.posts_on());
  policy_.on_request(now_);
  EXPECT_TRUE(policy_.posts_on());
  policy_.on_poll();
  EXPECT_FALSE(policy_.posts_on());
}

TEST_F(HoldingPolicyTest, TheDeadlineIsTheFirstFramesAndGoesWithIt) {
  EXPECT_EQ(policy_.deadline(), Time::never());
  policy_.on_held(now_);
  policy_.on_held(now_ + us(50));
  EXPECT_EQ(policy_.deadline(), now_ + us(500));
  policy_.on_sent();
  EXPECT_EQ(policy_.deadline(), Time::never());
}

TEST_F(HoldingPolicyTest, WhoLeftThemLyingIsDistrustedForLongerEachTime) {
  Duration expected = ms(20);
  for (u32 times = 0; times < 12; ++times) {
    policy_.on_held(now_);
    policy_.on_overdue(now_);
    policy_.on_sent();
    call_often();
    EXPECT_FALSE(policy_.may_hold(now_));
    now_ = now_ + expected;
    call_often();
    EXPECT_TRUE(policy_.may_hold(now_)) << times;
    expected = std::min(expected * 2, sec(1));
  }
  now_ = now_ + sec(3);
  policy_.on_held(now_);
  policy_.on_overdue(now_);
  now_ = now_ + ms(10);
  call_often();
  EXPECT_TRUE(policy_.may_hold(now_));
}

TEST_F(HoldingPolicyTest, AnAcknowledgementWaitsForWhoHasRepliedSoonBefore) {
  for (u32 i = 0; i < 3; ++i) {
    EXPECT_FALSE(policy_.may_hold_acknowledgement()) << i;
    policy_.on_acknowledgement(now_);
    EXPECT_TRUE(policy_.awaits_reply());
    policy_.on_request(now_ = now_ + us(2));
    EXPECT_FALSE(policy_.awaits_reply());
  }
  EXPECT_TRUE(policy_.may_hold_acknowledgement());
  policy_.on_request(now_);  // of its own accord
  policy_.on_acknowledgement(now_);
  policy_.on_acknowledgement(now_);  // the first had no reply
  EXPECT_FALSE(policy_.may_hold_acknowledgement());
}

TEST_F(HoldingPolicyTest, LateAndMissingRepliesCountAgainstIt) {
  const auto reply = [this](Duration after) {
    policy_.on_acknowledgement(now_);
    policy_.on_request(now_ = now_ + after);
  };
  for (u32 i = 0; i < 100; ++i) reply(us(1));
  for (u32 i = 0; i < 3; ++i) {
    reply(us(101));
    EXPECT_TRUE(policy_.may_hold_acknowledgement()) << i;  // once is nothing
  }
  policy_.on_acknowledgement(now_);
  for (u32 i = 0; i < 4; ++i) policy_.on_vain_poll(now_);
  EXPECT_FALSE(policy_.may_hold_acknowledgement());
  for (u32 i = 0; i < 3; ++i) reply(us(1));
  EXPECT_TRUE(policy_.may_hold_acknowledgement());
}

// libfabric's rxm polls until nothing is left before it tells its caller of a message.
TEST_F(HoldingPolicyTest, AHeldAcknowledgementOutlastsAFewPollsInVain) {
  policy_.on_acknowledgement(now_);
  policy_.on_held_acknowledgement(now_);
  for (u32 i = 0; i < 4; ++i) {
    EXPECT_FALSE(policy_.must_send_in_poll()) << i;
    policy_.on_vain_poll(now_);
  }
  EXPECT_TRUE(policy_.must_send_in_poll());
  policy_.on_sent();
  EXPECT_FALSE(policy_.must_send_in_poll());
  policy_.on_acknowledgement(now_);
  policy_.on_held_acknowledgement(now_);
  policy_.on_vain_poll(now_);
  EXPECT_FALSE(policy_.must_send_in_poll());  // each is counted anew
  policy_.on_held(now_);
  EXPECT_TRUE(policy_.must_send_in_poll());  // requests do not wait
}

// On an emulated processor a call takes 100 us.
TEST_F(HoldingPolicyTest, WhatIsSoonDependsOnWhatACallTakes) {
  for (u32 i = 0; i < 100; ++i) {
    policy_.on_call(now_ = now_ + us(1));
    policy_.on_return(now_ = now_ + us(100));
  }
  for (u32 i = 0; i < 3; ++i) {
    policy_.on_acknowledgement(now_);
    policy_.on_request(now_ = now_ + us(350));
  }
  EXPECT_TRUE(policy_.may_hold_acknowledgement());
  policy_.on_acknowledgement(now_);
  policy_.on_held_acknowledgement(now_);
  for (u32 i = 0; i < 9; ++i) policy_.on_vain_poll(now_ = now_ + us(10));
  EXPECT_FALSE(policy_.must_send_in_poll());
  policy_.on_vain_poll(now_ = now_ + us(10));
  EXPECT_TRUE(policy_.must_send_in_poll());
}

TEST_F(HoldingPolicyTest, AnOverdueAcknowledgementTakesLongToForget) {
  for (u32 i = 0; i < 100; ++i) {
    policy_.on_acknowledgement(now_);
    policy_.on_request(now_);
  }
  policy_.on_acknowledgement(now_);
  policy_.on_held_acknowledgement(now_);
  EXPECT_EQ(policy_.deadline(), now_ + ms(1));
  policy_.on_overdue(now_ = now_ + ms(1));
  policy_.on_sent();
  u32 replies = 0;
  for (; !policy_.may_hold_acknowledgement(); ++replies) {
    policy_.on_acknowledgement(now_);
    policy_.on_request(now_);
  }
  EXPECT_GE(replies, 64u);
  call_often();
  EXPECT_TRUE(policy_.may_hold(now_));  // requests are another matter
}

}  // namespace
}  // namespace verbena::host
