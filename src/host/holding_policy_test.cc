#include "host/holding_policy.h"

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

TEST_F(HoldingPolicyTest, TheDeadlineIsTheFirstFramesAndGoesWithIt) {
  EXPECT_EQ(policy_.deadline(), Time::never());
  policy_.on_held(now_);
  policy_.on_held(now_ + us(50));
  EXPECT_EQ(policy_.deadline(), now_ + us(200));
  policy_.on_sent();
  EXPECT_EQ(policy_.deadline(), Time::never());
}

TEST_F(HoldingPolicyTest, WhoLeftThemLyingIsDistrustedForLongerEachTime) {
  Duration expected = ms(20);
  for (u32 times = 0; times < 12; ++times) {
    policy_.on_overdue(now_);
    call_often();
    EXPECT_FALSE(policy_.may_hold(now_));
    now_ = now_ + expected;
    call_often();
    EXPECT_TRUE(policy_.may_hold(now_)) << times;
    expected = std::min(expected * 2, sec(1));
  }
  now_ = now_ + sec(3);
  policy_.on_overdue(now_);
  now_ = now_ + ms(10);
  call_often();
  EXPECT_TRUE(policy_.may_hold(now_));
}

}  // namespace
}  // namespace verbena::host
