#include "host/progress/progress_policy.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace verbena::host {
namespace {

class ProgressPolicyTest : public testing::Test {
 protected:
  Time at(Duration d) const { return Time() + sec(100) + d; }
  void poll_empty(int times, Duration when = us(0)) {
    for (int i = 0; i < times; ++i) policy_.on_application_poll(PollResult::kEmpty, at(when));
  }
  void helper_receives(Time now) { policy_.on_helper_received(Calls::kSeldom, now); }
  void wait_in_calls(int times) {
    for (int i = 0; i < times; ++i) {
      EXPECT_TRUE(policy_.on_wait(at(ms(i))));
      policy_.on_wait_over(Sleepers::kNone, at(ms(i)));
    }
  }
  // For a program that polls, waits in memory, and then posts: once in 2 ms, from at(us(0)).
  void help_between_polls(int times) {
    poll_empty(3);
    EXPECT_TRUE(policy_.on_helper_wake(at(ms(1))));
    for (int i = 0; i < times; ++i) {
      helper_receives(at(ms(2 * i + 1)));
      policy_.on_application_request();
      poll_empty(3, ms(2 * i + 2));
      if (i + 1 < times) policy_.on_application_poll(PollResult::kFound, at(ms(2 * i + 2)));
    }
  }
  void request() {  // an event of one CQ
    policy_.on_requested(Requested::kSome);
    policy_.on_notification_request();
  }
  void all_events_come() { policy_.on_requested(Requested::kNone); }

  ProgressPolicy policy_;
};

TEST_F(ProgressPolicyTest, WhoAlwaysFindsSomethingReceivesNowAndThen) {
  EXPECT_TRUE(policy_.should_receive_in_poll(false));
  u32 received = 0;
  for (u32 i = 0; i < 320; ++i) received += policy_.should_receive_in_poll(true) ? 1 : 0;
  EXPECT_EQ(received, 10u);
  for (u32 i = 0; i < 320; ++i) {
    EXPECT_FALSE(policy_.should_receive_in_poll(true)) << "that was a row of its own";
    EXPECT_TRUE(policy_.should_receive_in_poll(false));
  }
}

TEST_F(ProgressPolicyTest, ListensFromTheStartWithoutAnyWakeup) {
  EXPECT_TRUE(policy_.listens());
  EXPECT_EQ(policy_.next_check(), Time::never());
  EXPECT_TRUE(policy_.on_helper_wake(at(us(0))));
}

TEST_F(ProgressPolicyTest, ThreeEmptyPollsAreSpinning) {
  poll_empty(2);
  EXPECT_TRUE(policy_.listens());
  policy_.on_application_poll(PollResult::kFound, at(us(0)));
  poll_empty(2);
  EXPECT_TRUE(policy_.listens());
  poll_empty(1);
  EXPECT_FALSE(policy_.listens());
  EXPECT_EQ(policy_.next_check(), at(ms(1)));
}

TEST_F(ProgressPolicyTest, WhoReceivesEverythingHimselfNeedsNoHelper) {
  const auto poll_received = [this] {
    policy_.on_receipt_in_poll(at(us(0)));
    policy_.on_application_poll(PollResult::kFound, at(us(0)));
  };
  for (int i = 0; i < 63; ++i) poll_received();
  EXPECT_TRUE(policy_.listens());
  helper_receives(at(us(0)));  // it was of use, or would have been
  for (int i = 0; i < 63; ++i) poll_received();
  EXPECT_TRUE(policy_.listens());
  poll_received();
  EXPECT_FALSE(policy_.listens());
  EXPECT_EQ(policy_.next_check(), at(ms(1)));
  policy_.on_application_sleep();
  for (int i = 0; i < 63; ++i) poll_received();
  EXPECT_TRUE(policy_.listens()) << "counted from when it listened anew";
}

TEST_F(ProgressPolicyTest, BackstopBacksOffWhilePollsCome) {
  poll_empty(3);
  Duration t = ms(1);
  for (const Duration step : {ms(2), ms(4), ms(4), ms(4)}) {
    poll_empty(1, t);
    EXPECT_FALSE(policy_.on_helper_wake(at(t)));
    EXPECT_EQ(policy_.next_check(), at(t + step));
    t = t + step;
  }
}

TEST_F(ProgressPolicyTest, BackstopListensWhenPollsEnd) {
  poll_empty(3);
  EXPECT_FALSE(policy_.on_helper_wake(at(us(500))));  // for a device timer
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(1))));
  EXPECT_TRUE(policy_.listens());
  EXPECT_EQ(policy_.next_check(), Time::never());
}

TEST_F(ProgressPolicyTest, BackstopStartsAnewAfterListening) {
  poll_empty(3);
  poll_empty(1, ms(1));
  EXPECT_FALSE(policy_.on_helper_wake(at(ms(1))));
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(3))));
  poll_empty(3, ms(5));
  EXPECT_EQ(policy_.next_check(), at(ms(6)));
}

TEST_F(ProgressPolicyTest, ASleepingApplicationIsServedAtOnce) {
  poll_empty(3);
  policy_.on_application_sleep();
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, AFindingSpinnerKeepsReceivingItself) {  // ib_send_lat
  poll_empty(3);
  for (int i = 0; i < 100; ++i) {
    policy_.on_application_poll(PollResult::kFound, at(us(i)));
    poll_empty(1, us(i));
    EXPECT_FALSE(policy_.listens());
  }
}

TEST_F(ProgressPolicyTest, WhoHasFoundItsRequestWaitsForNoOther) {
  poll_empty(3);
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(1))));
  helper_receives(at(ms(1)));
  poll_empty(3, ms(2));
  policy_.on_application_poll(PollResult::kFoundWithRequest, at(ms(2)));
  EXPECT_FALSE(policy_.should_stay());
  EXPECT_FALSE(policy_.listens());
  policy_.on_application_poll(PollResult::kFound, at(ms(3)));
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, ListensWhereACompletionComesWithoutTheUsualRequest) {
  poll_empty(3);
  for (int i = 0; i < 7; ++i) policy_.on_application_poll(PollResult::kFoundWithRequest, at(us(i)));
  policy_.on_application_poll(PollResult::kFound, at(us(8)));
  EXPECT_FALSE(policy_.listens());  // that it always comes with one is not known yet
  for (int i = 0; i < 8; ++i)
    policy_.on_application_poll(PollResult::kFoundWithRequest, at(us(10 + i)));
  policy_.on_application_poll(PollResult::kFound, at(us(20)));
  EXPECT_TRUE(policy_.listens());
}

// ib_write_bw between processes of one host: what is posted is done at once.
TEST_F(ProgressPolicyTest, TheBackstopMovesOnWithPollsThatAlwaysFind) {
  poll_empty(3);
  policy_.on_application_poll(PollResult::kFoundWithRequest, at(us(600)));
  EXPECT_EQ(policy_.next_check(), at(us(2600)));
  policy_.on_application_poll(PollResult::kFoundWithRequest, at(us(700)));
  EXPECT_EQ(policy_.next_check(), at(us(2600)));
}

TEST_F(ProgressPolicyTest, TheBackstopMovesOnWithThePolls) {
  poll_empty(3);
  poll_empty(1, us(400));
  EXPECT_EQ(policy_.next_check(), at(ms(1)));
  poll_empty(1, us(500));
  EXPECT_EQ(policy_.next_check(), at(us(2500)));
  poll_empty(1, us(1500));
  EXPECT_EQ(policy_.next_check(), at(us(5500)));
  poll_empty(1, us(1501));
  EXPECT_FALSE(policy_.on_helper_wake(at(us(5500))));  // one poll has come since
  EXPECT_TRUE(policy_.on_helper_wake(at(us(9500))));
}

TEST_F(ProgressPolicyTest, ListensBetweenPollsOnceThatWasOfUse) {  // ib_write_lat
  poll_empty(3);
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(1))));  // it waits in memory
  helper_receives(at(ms(1)));
  for (int i = 0; i < 1000; ++i) {
    poll_empty(5, ms(2 + i));
    EXPECT_FALSE(policy_.listens());
    policy_.on_application_poll(PollResult::kFound, at(ms(2 + i)));
    if (policy_.should_stay()) policy_.on_stay(LookResult::kNothing, at(ms(2 + i) + us(500)));
    ASSERT_TRUE(policy_.listens()) << i;
    if (i % 10 == 0) helper_receives(at(ms(2 + i) + us(200)));
  }
}

// ib_write_lat in a hurry: its next poll comes soon after the help, but after its own request.
TEST_F(ProgressPolicyTest, ListensForWhoAnswersWhatTheHelperReceived) {
  poll_empty(3);
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(1))));
  for (int i = 1; i < 1000; ++i) {
    helper_receives(at(ms(i)));
    policy_.on_application_request();
    poll_empty(3, ms(i) + us(1));
    policy_.on_application_poll(PollResult::kFound, at(ms(i) + us(2)));
    if (policy_.should_stay()) policy_.on_stay(LookResult::kNothing, at(ms(i) + us(502)));
    ASSERT_TRUE(policy_.listens()) << i;
  }
}

// An MPI program that polls all the time: what the helper receives, it would have received itself.
TEST_F(ProgressPolicyTest, StopsListeningForWhoPollsOn) {
  poll_empty(3);
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(1))));
  helper_receives(at(ms(1)));
  int listened = 0;
  for (int i = 2; i < 1000; ++i) {
    policy_.on_application_request();
    poll_empty(3, ms(i));
    policy_.on_application_poll(PollResult::kFound, at(ms(i)));
    if (policy_.should_stay()) policy_.on_stay(LookResult::kReceived, at(ms(i) + us(1)));
    if (!policy_.listens()) continue;
    ++listened;
    helper_receives(at(ms(i) + us(5)));
    poll_empty(1, ms(i) + us(6));
  }
  EXPECT_GE(listened, 1);
  EXPECT_LE(listened, 16);
}

// The round trip of ib_write_lat is longer than that of most networks, or the helper waits for the
// core on which the program spins.
TEST_F(ProgressPolicyTest, StaysWhereTheHelperHasBeenOfUseFourTimes) {
  help_between_polls(3);
  policy_.on_application_poll(PollResult::kFound, at(ms(6)));
  EXPECT_FALSE(policy_.should_stay()) << "what it waits for may be far away";
  EXPECT_TRUE(policy_.listens());
  helper_receives(at(ms(9)));
  policy_.on_application_request();
  for (int i = 10; i < 1000; ++i) {
    poll_empty(5, ms(i));
    policy_.on_application_poll(PollResult::kFound, at(ms(i)));
    ASSERT_TRUE(policy_.should_stay()) << i;
    EXPECT_FALSE(policy_.listens());
    policy_.on_stay(LookResult::kNothing, at(ms(i) + us(59)));
    ASSERT_TRUE(policy_.should_stay());
    policy_.on_stay(LookResult::kReceived, at(ms(i) + us(60)));
    EXPECT_FALSE(policy_.should_stay());
    EXPECT_TRUE(policy_.listens());  // what came may not have been all
  }
}

TEST_F(ProgressPolicyTest, DoesNotStayForAProgramThatWaitsForEvents) {
  for (int i = 0; i < 20; ++i) {
    request();
    helper_receives(at(ms(2 * i)));
    policy_.on_application_request();
    all_events_come();
    poll_empty(1, ms(2 * i) + us(10));
    policy_.on_application_poll(PollResult::kFound, at(ms(2 * i) + us(10)));
    ASSERT_FALSE(policy_.should_stay()) << i;
  }
}

TEST_F(ProgressPolicyTest, StayingIsGivenUpWhenInVain) {
  help_between_polls(4);
  poll_empty(3, ms(20));
  policy_.on_application_poll(PollResult::kFound, at(ms(20)));
  EXPECT_TRUE(policy_.should_stay());
  policy_.on_stay(LookResult::kNothing, at(ms(20) + us(499)));
  EXPECT_TRUE(policy_.should_stay());
  policy_.on_stay(LookResult::kNothing, at(ms(20) + us(500)));
  EXPECT_FALSE(policy_.should_stay());
  EXPECT_TRUE(policy_.listens());
  poll_empty(3, ms(21));
  policy_.on_application_poll(PollResult::kFound, at(ms(21)));
  EXPECT_FALSE(policy_.should_stay());
}

TEST_F(ProgressPolicyTest, DoesNotStayForWhatTheProgramPollsItself) {
  help_between_polls(4);
  int stayed = 0;
  for (int i = 9; i < 1000; ++i) {
    policy_.on_application_poll(PollResult::kFound, at(ms(i)));
    if (!policy_.should_stay()) continue;
    ++stayed;
    policy_.on_stay(LookResult::kReceived, at(ms(i) + us(1)));
  }
  EXPECT_GE(stayed, 1);
  EXPECT_LE(stayed, 8);
}

// ib_write_lat on iWARP: each poll finds its WRITE complete, then the program waits in memory.
TEST_F(ProgressPolicyTest, StaysWhereRequestsCompleteWhenSent) {
  ProgressPolicy policy(Completes::kWhenSent);
  for (int i = 0; i < 20; ++i) {
    policy.on_application_post(at(ms(i)));
    policy.on_application_request();
    policy.on_application_poll(PollResult::kFound, at(ms(i)));
    if (i < 4) {
      EXPECT_FALSE(policy.should_stay());
      EXPECT_TRUE(policy.on_helper_wake(at(ms(i) + us(500))));
      policy.on_helper_received(Calls::kSeldom, at(ms(i) + us(500)));
      continue;
    }
    ASSERT_TRUE(policy.should_stay()) << i;
    EXPECT_FALSE(policy.should_offer_core_in_stay(at(ms(i) + us(99))));
    policy.on_stay(LookResult::kNothing, at(ms(i) + us(100)));
    EXPECT_TRUE(policy.should_stay());
    EXPECT_TRUE(policy.should_offer_core_in_stay(at(ms(i) + us(100))));
    policy.on_stay(LookResult::kReceived, at(ms(i) + us(150)));
  }
}

TEST_F(ProgressPolicyTest, StopsListeningBetweenPollsWhenThatIsNoLongerOfUse) {
  poll_empty(3);
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(1))));
  helper_receives(at(ms(1)));
  int listened = 0;
  for (int i = 0; i < 1000; ++i) {
    poll_empty(3, ms(2));
    policy_.on_application_poll(PollResult::kFound, at(ms(2)));
    listened += policy_.listens() ? 1 : 0;
  }
  EXPECT_GT(listened, 10);
  EXPECT_LT(listened, 100);
}

TEST_F(ProgressPolicyTest, LingersAfterTrafficWhileNobodyPolls) {
  EXPECT_FALSE(policy_.should_look_again(at(us(0))));
  helper_receives(at(us(0)));
  EXPECT_TRUE(policy_.should_look_again(at(us(49))));
  EXPECT_FALSE(policy_.should_look_again(at(us(50))));
  helper_receives(at(us(60)));
  poll_empty(1, us(61));
  EXPECT_FALSE(policy_.should_look_again(at(us(62))));
}

TEST_F(ProgressPolicyTest, LingersForAsLongAsMessagesLetWait) {
  helper_receives(at(us(0)));
  helper_receives(at(us(60)));
  EXPECT_TRUE(policy_.should_look_again(at(us(60 + 119))));
  EXPECT_FALSE(policy_.should_look_again(at(us(60 + 120))));
  helper_receives(at(us(60 + 149)));
  EXPECT_TRUE(policy_.should_look_again(at(us(209 + 149))));
  EXPECT_FALSE(policy_.should_look_again(at(us(209 + 150))));
  helper_receives(at(us(1000)));  // too seldom to wait for
  EXPECT_TRUE(policy_.should_look_again(at(us(1049))));
  EXPECT_FALSE(policy_.should_look_again(at(us(1050))));
}

TEST_F(ProgressPolicyTest, RestsAfterEachReceiptWhileTheProgramCallsOften) {  // ib_write_bw -q 1000
  policy_.on_helper_received(Calls::kOften, at(us(0)));
  EXPECT_FALSE(policy_.listens());
  EXPECT_FALSE(policy_.should_look_again(at(us(1))));
  EXPECT_EQ(policy_.next_check(), at(us(100)));
  EXPECT_FALSE(policy_.on_helper_wake(at(us(99))));  // for something else
  EXPECT_TRUE(policy_.on_helper_wake(at(us(100))));
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, RestsNoLongerWhereTheProgramSleepsOrSpins) {
  policy_.on_helper_received(Calls::kOften, at(us(0)));
  policy_.on_application_sleep();
  EXPECT_TRUE(policy_.listens());
  policy_.on_helper_received(Calls::kOften, at(us(10)));
  poll_empty(3, us(20));
  EXPECT_EQ(policy_.next_check(), at(us(20) + ms(1)));
}

TEST_F(ProgressPolicyTest, LingersForWhoPollsOnlyWhenTold) {  // ib_send_lat -e
  helper_receives(at(us(0)));
  policy_.on_application_sleep();
  policy_.on_application_poll(PollResult::kFound, at(us(1)));
  poll_empty(2, us(2));
  EXPECT_TRUE(policy_.should_look_again(at(us(49))));
  EXPECT_FALSE(policy_.should_look_again(at(us(50))));
  poll_empty(1, us(51));  // it spins now
  helper_receives(at(us(60)));
  poll_empty(1, us(61));
  EXPECT_FALSE(policy_.should_look_again(at(us(62))));
}

TEST_F(ProgressPolicyTest, WhoWaitsInACallReceivesInTheHelpersPlace) {  // ib_send_lat -e
  helper_receives(at(us(0)));
  ASSERT_TRUE(policy_.on_wait(at(us(10))));
  EXPECT_FALSE(policy_.is_listened_to()) << "it looks";
  EXPECT_FALSE(policy_.on_wait(at(us(11)))) << "another thread: one receives for all";
  EXPECT_TRUE(policy_.should_look_in_wait(at(us(49))));
  EXPECT_FALSE(policy_.should_look_in_wait(at(us(50))));
  policy_.on_sleep_in_wait();
  EXPECT_TRUE(policy_.is_listened_to()) << "it sleeps on the link";
  EXPECT_FALSE(policy_.listens()) << "the helper does not listen besides";
  EXPECT_FALSE(policy_.on_wait(at(us(51))));
  policy_.on_wake_in_wait(at(ms(7)));
  EXPECT_FALSE(policy_.is_listened_to());
  EXPECT_LE(policy_.next_check(), at(ms(7) + ms(4))) << "others may have its core";
  policy_.on_look_in_wait(LookResult::kReceived, at(ms(7)));
  EXPECT_TRUE(policy_.should_look_in_wait(at(ms(7) + us(49)))) << "and there may be more";
  policy_.on_wait_over(Sleepers::kNone, at(ms(7)));
  EXPECT_TRUE(policy_.listens()) << "whether it comes again is not known yet";
  helper_receives(at(ms(8)));
  EXPECT_FALSE(policy_.should_look_again(at(ms(8)))) << "nor does the helper stay awake";
  policy_.on_notification_request();  // it waits elsewhere, in poll()
  EXPECT_TRUE(policy_.should_look_again(at(ms(8))));
}

TEST_F(ProgressPolicyTest, AWaiterSleepsAtOnceWhereNothingCameOfLate) {
  ASSERT_TRUE(policy_.on_wait(at(us(0))));
  EXPECT_FALSE(policy_.should_look_in_wait(at(us(0))));
}

TEST_F(ProgressPolicyTest, AWaiterThatOtherThreadsLeaveNothingSleepsUntilItsEvent) {
  ASSERT_TRUE(policy_.on_wait(at(us(0))));
  int wakes = 0;
  const auto wake = [&](LookResult result) {
    policy_.on_sleep_in_wait();
    policy_.on_wake_in_wait(at(ms(++wakes)));
    policy_.on_look_in_wait(result, at(ms(wakes)));
    policy_.on_look_in_wait(LookResult::kNothing, at(ms(wakes)));
  };
  for (int i = 0; i < 7; ++i) wake(LookResult::kNothing);
  wake(LookResult::kReceived);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(policy_.should_sleep_on_link()) << i;
    wake(LookResult::kNothing);
  }
  EXPECT_FALSE(policy_.should_sleep_on_link());
  policy_.on_vain_wakes(at(ms(wakes)));
  EXPECT_TRUE(policy_.listens()) << "all threads may sleep now";
  poll_empty(3, ms(wakes));
  EXPECT_EQ(policy_.receiver(), Receiver::kCalls) << "the other thread spins";
  EXPECT_TRUE(policy_.on_wait(at(ms(wakes)))) << "the next that waits tries again";
  EXPECT_TRUE(policy_.should_sleep_on_link());
}

TEST_F(ProgressPolicyTest, NoHelperIsNeededWhileAWaitingThreadReceives) {
  helper_receives(at(us(0)));
  ASSERT_TRUE(policy_.on_wait(at(us(10))));
  for (Duration t = us(10); t < ms(20); t = t + us(10)) {  // a long message
    policy_.on_look_in_wait(LookResult::kReceived, at(t));
    ASSERT_TRUE(policy_.should_look_in_wait(at(t)));
    ASSERT_FALSE(policy_.listens());
    if (at(t) < policy_.next_check()) continue;
    EXPECT_FALSE(policy_.on_helper_wake(at(t)));
  }
}

TEST_F(ProgressPolicyTest, NobodyNeedsTheHelperWhileAThreadWaits) {
  ASSERT_TRUE(policy_.on_wait(at(us(0))));
  policy_.on_application_sleep();  // another thread, for a connection
  EXPECT_EQ(policy_.receiver(), Receiver::kLookingWaiter);
  policy_.on_sleep_in_wait();
  policy_.on_application_sleep();
  poll_empty(3);
  EXPECT_EQ(policy_.receiver(), Receiver::kSleepingWaiter);
  EXPECT_TRUE(policy_.on_helper_wake(at(ms(1)))) << "for a timer; something may be there";
}

TEST_F(ProgressPolicyTest, WhoFindsItsEventInEachWaitWillComeAgain) {
  helper_receives(at(us(0)));
  Duration t = us(0);
  for (int waits = 1; waits <= 20; ++waits) {
    t = t + us(20);
    policy_.on_notification_request();
    ASSERT_TRUE(policy_.on_wait(at(t)));
    policy_.on_look_in_wait(LookResult::kReceived, at(t));
    policy_.on_wait_over(Sleepers::kNone, at(t));
    EXPECT_EQ(policy_.listens(), waits < 8) << waits;
  }
  policy_.on_notification_request();
  EXPECT_FALSE(policy_.listens());
  EXPECT_LE(policy_.next_check(), at(t + ms(4)));
  EXPECT_TRUE(policy_.on_helper_wake(policy_.next_check())) << "it has not come again";
  EXPECT_TRUE(policy_.listens());
  policy_.on_notification_request();
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, SleepersRelyOnThreadsThatHaveTheirEventsAndComeAgain) {
  ASSERT_TRUE(policy_.on_wait(at(us(0))));
  EXPECT_FALSE(policy_.should_leave_to_woken()) << "do they come again?";
  policy_.on_wait_over(Sleepers::kSome, at(us(0)));
  EXPECT_TRUE(policy_.listens());
  wait_in_calls(8);
  for (Duration now = ms(10); now < ms(12); now = now + us(398)) {
    ASSERT_TRUE(policy_.on_wait(at(now)));
    EXPECT_TRUE(policy_.should_leave_to_woken());
    policy_.on_wait_over(Sleepers::kSome, at(now));
    EXPECT_EQ(policy_.receiver(), Receiver::kCalls);
    EXPECT_EQ(policy_.next_check(), at(now + ms(1)));
    policy_.on_application_poll(PollResult::kFound, at(now + us(199)));
  }
}

TEST_F(ProgressPolicyTest, TheBackstopLooksSoonerWhereOthersSleep) {
  wait_in_calls(8);
  for (const Sleepers others : {Sleepers::kNone, Sleepers::kSome}) {
    ASSERT_TRUE(policy_.on_wait(at(ms(10))));
    for (const Duration woken : {ms(20), ms(30)}) {
      policy_.on_sleep_in_wait();
      policy_.on_wake_in_wait(at(woken));
    }
    policy_.on_wait_over(others, at(ms(30)));
    EXPECT_EQ(policy_.next_check(), at(ms(30) + (others == Sleepers::kSome ? ms(1) : ms(4))));
  }
}

TEST_F(ProgressPolicyTest, SleepersRelyOnTheHelperWhereThreadsCallLate) {
  const std::array<std::function<void(Time)>, 3> calls{
      [this](Time now) { policy_.on_application_post(now); },
      [this](Time now) { policy_.on_application_poll(PollResult::kFound, now); }, [](Time) {}};
  for (const auto& call : calls) {
    policy_ = ProgressPolicy();
    wait_in_calls(8);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(policy_.on_wait(at(ms(10 + i))));
      policy_.on_wait_over(Sleepers::kSome, at(ms(10 + i)));
      EXPECT_EQ(policy_.listens(), i != 0);
      call(at(ms(10 + i) + us(200)));
    }
    wait_in_calls(8);
    EXPECT_TRUE(policy_.should_leave_to_woken()) << "they come again";
  }
}

TEST_F(ProgressPolicyTest, AProgramIsAwakeFromItsEventUntilItsNextRequest) {
  request();
  helper_receives(at(us(0)));
  EXPECT_TRUE(policy_.listens()) << "no event has come of it";
  all_events_come();
  helper_receives(at(us(1)));
  EXPECT_FALSE(policy_.listens());
  EXPECT_EQ(policy_.next_check(), at(us(1) + ms(1))) << "the backstop looks";
  request();
  EXPECT_TRUE(policy_.listens());
}

// As it will be needed as soon as the program sleeps again, and to wake it takes longer than that.
TEST_F(ProgressPolicyTest, TheHelperStaysAwakeWhileTheProgramHasItsEvent) {
  request();
  all_events_come();
  helper_receives(at(us(0)));
  poll_empty(1, us(1));
  EXPECT_FALSE(policy_.on_helper_wake(at(us(2)))) << "the program's calls receive";
  EXPECT_TRUE(policy_.should_look_again(at(us(2))));
  EXPECT_FALSE(policy_.should_look_again(at(us(50)))) << "it does not call any more";
  request();
  EXPECT_TRUE(policy_.on_helper_wake(at(us(51))));
}

TEST_F(ProgressPolicyTest, ItsCallsTellThatItIsAwake) {
  for (const bool posts : {true, false}) {
    request();
    all_events_come();
    EXPECT_TRUE(policy_.listens());
    posts ? policy_.on_application_post(at(us(0)))
          : policy_.on_application_poll(PollResult::kFound, at(us(0)));
    EXPECT_FALSE(policy_.listens()) << posts;
  }
}

TEST_F(ProgressPolicyTest, WhereAnotherThreadSleepsTheHelperListens) {
  request();  // two CQs; the event of one has come
  policy_.on_requested(Requested::kSome);
  helper_receives(at(us(0)));
  for (int i = 0; i < 20; ++i) policy_.on_application_post(at(us(1)));
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, AProgramThatWaitsForAConnectionIsNotAwake) {
  request();
  all_events_come();
  policy_.on_application_sleep();
  policy_.on_application_post(at(us(0)));
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, AnAwakeProgramThatEndsItsCallsIsFoundByTheBackstop) {
  request();
  all_events_come();
  policy_.on_application_post(at(us(0)));
  policy_.on_application_post(at(us(100)));
  EXPECT_TRUE(policy_.on_helper_wake(policy_.next_check()));
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, WhoHasWaitedInCallsAndNowWaitsElsewhereIsHelpedAtOnce) {
  wait_in_calls(8);
  request();
  all_events_come();
  policy_.on_application_post(at(sec(1)));
  EXPECT_FALSE(policy_.listens());
  for (int i = 0; i < 7; ++i) policy_.on_notification_request();  // of as many CQs, maybe
  EXPECT_FALSE(policy_.listens());
  policy_.on_notification_request();
  EXPECT_TRUE(policy_.listens());
}

TEST_F(ProgressPolicyTest, DoesNotLingerWhereOthersWantTheCore) {
  policy_.on_core_returned_to_helper(at(us(-1999)), at(us(0)));  // the program had it
  helper_receives(at(us(0)));
  EXPECT_TRUE(policy_.should_look_again(at(us(2))));
  policy_.on_core_returned_to_helper(at(us(2)), at(us(2002)));
  helper_receives(at(ms(4)));
  EXPECT_FALSE(policy_.should_look_again(at(ms(4))));
  helper_receives(at(ms(14)));
  EXPECT_TRUE(policy_.should_look_again(at(ms(14))));
  policy_.on_core_returned_to_helper(at(ms(14)), at(ms(17)));  // again: a longer rest
  helper_receives(at(ms(30)));
  EXPECT_FALSE(policy_.should_look_again(at(ms(30))));
  helper_receives(at(ms(38)));
  EXPECT_TRUE(policy_.should_look_again(at(ms(38))));
}

TEST_F(ProgressPolicyTest, OffersTheCoreAfterPollingInVainForLong) {
  for (Duration t = us(0); t < us(100); t = t + us(10)) {
    poll_empty(1, t);
    EXPECT_FALSE(policy_.should_offer_core());
  }
  poll_empty(1, us(100));
  EXPECT_TRUE(policy_.should_offer_core());
  policy_.on_application_poll(PollResult::kFound, at(us(110)));
  EXPECT_FALSE(policy_.should_offer_core());
}

TEST_F(ProgressPolicyTest, OffersTheCoreLessOftenWhereNobodyTakesIt) {
  Duration t = us(0);
  const auto polls_until_offer = [&] {
    for (int polls = 1; polls <= 1000; ++polls, t = t + us(1)) {
      poll_empty(1, t);
      if (policy_.should_offer_core()) return polls;
    }
    return 0;
  };
  EXPECT_EQ(polls_until_offer(), 101);
  for (const int polls : {2, 4, 8, 16, 16}) {
    t = t + us(2);  // the offer itself
    EXPECT_EQ(polls_until_offer(), polls);
  }
  for (int i = 0; i < 5; ++i) {
    t = t + us(10);
    EXPECT_EQ(polls_until_offer(), 1);
  }
}

TEST_F(ProgressPolicyTest, OffersTheCoreAtOnceAfterAnOfferThatWasAnswered) {
  for (Duration t = us(0); t <= us(100); t = t + us(1)) poll_empty(1, t);
  EXPECT_TRUE(policy_.should_offer_core());
  policy_.on_application_poll(PollResult::kFound,
                              at(us(110)));  // another process made it meanwhile
  poll_empty(1, us(111));
  EXPECT_TRUE(policy_.should_offer_core());
  poll_empty(1, us(112));  // nobody took it: the peer has a core of its own
  policy_.on_application_poll(PollResult::kFound, at(us(113)));
  poll_empty(1, us(114));
  EXPECT_FALSE(policy_.should_offer_core());
}

TEST_F(ProgressPolicyTest, AnOfferThatTookATimeSliceBringsNoAnswer) {
  for (Duration t = us(0); t <= us(100); t = t + us(1)) poll_empty(1, t);
  EXPECT_TRUE(policy_.should_offer_core());
  policy_.on_application_poll(PollResult::kFound, at(ms(3)));  // a compiler had the core
  for (Duration t = us(1); t < us(100); t = t + us(1)) {
    poll_empty(1, ms(3) + t);
    EXPECT_FALSE(policy_.should_offer_core());
  }
}

// A program that looks for other things, too, would lose a time slice with each poll.
TEST_F(ProgressPolicyTest, AnOfferThatTookATimeSliceIsRepeatedAfterAsLongAgain) {
  for (Duration t = us(0); t <= us(100); t = t + us(1)) poll_empty(1, t);
  EXPECT_TRUE(policy_.should_offer_core());
  for (Duration t = us(0); t < us(100); t = t + us(1)) {
    poll_empty(1, ms(3) + t);  // a compiler had the core
    EXPECT_FALSE(policy_.should_offer_core());
  }
  poll_empty(1, ms(3) + us(100));
  EXPECT_TRUE(policy_.should_offer_core());
}

TEST_F(ProgressPolicyTest, AWaiterOffersItsCoreWhereItHasItBackSoon) {
  ASSERT_TRUE(policy_.on_wait(at(us(0))));
  policy_.on_look_in_wait(LookResult::kReceived, at(us(1)));
  EXPECT_TRUE(policy_.should_offer_core());
  policy_.on_core_returned(at(us(1)), at(us(20)));  // its peer had the core
  policy_.on_look_in_wait(LookResult::kNothing, at(us(20)));
  EXPECT_TRUE(policy_.should_offer_core());
  policy_.on_core_returned(at(us(20)), at(ms(3)));  // a compiler had it
  policy_.on_look_in_wait(LookResult::kReceived, at(ms(3)));
  EXPECT_FALSE(policy_.should_offer_core());
  EXPECT_TRUE(policy_.should_look_in_wait(at(ms(3) + us(49)))) << "it keeps the core meanwhile";
  EXPECT_FALSE(policy_.should_look_in_wait(at(ms(4))));
  policy_.on_look_in_wait(LookResult::kReceived, at(ms(3) + DoublingRest::kMin));
  EXPECT_TRUE(policy_.should_offer_core()) << "it tries again";
}

TEST_F(ProgressPolicyTest, AWaiterSleepsAtOnceOnAWantedCoreWhereLooksAreInVain) {
  const auto wait_and_sleep = [&](Duration when) {
    ASSERT_TRUE(policy_.on_wait(at(when)));
    policy_.on_sleep_in_wait();
    policy_.on_wake_in_wait(at(when));
    policy_.on_look_in_wait(LookResult::kReceived, at(when));
    policy_.on_wait_over(Sleepers::kNone, at(when));
  };
  policy_.on_core_returned(at(us(0)), at(ms(3)));
  wait_and_sleep(ms(3));
  ASSERT_TRUE(policy_.on_wait(at(ms(3))));
  EXPECT_TRUE(policy_.should_look_in_wait(at(ms(3)))) << "once may be chance";
  policy_.on_wait_over(Sleepers::kNone, at(ms(3)));  // a look has found the event
  u32 looks = 0;
  for (u32 i = 0; i < 64; ++i) {
    ASSERT_TRUE(policy_.on_wait(at(ms(3))));
    looks += policy_.should_look_in_wait(at(ms(3))) ? 1 : 0;
    policy_.on_sleep_in_wait();
    policy_.on_wait_over(Sleepers::kNone, at(ms(3)));
  }
  EXPECT_GT(looks, 4u) << "it may pay again";
  EXPECT_LE(looks, 8u);
}

TEST_F(ProgressPolicyTest, AnOfferThatIsSkippedIsNotJudged) {
  for (Duration t = us(0); t <= us(100); t = t + us(1)) poll_empty(1, t);
  policy_.on_application_poll(PollResult::kFound, at(us(110)));  // the offer was answered
  poll_empty(1, us(111));
  EXPECT_TRUE(policy_.should_offer_core());
  policy_.skip_offer();
  EXPECT_FALSE(policy_.should_offer_core());
  poll_empty(1, us(112));  // soon, but not since nobody wants the core
  EXPECT_TRUE(policy_.should_offer_core());
}

TEST_F(ProgressPolicyTest, KeepsTheCoreWhilePacketsCome) {  // ib_read_bw -s 1048576
  for (Duration t = us(0); t < ms(1); t = t + us(10)) {
    policy_.on_application_poll(PollResult::kReceived, at(t));
    EXPECT_FALSE(policy_.should_offer_core());
  }
  EXPECT_FALSE(policy_.listens());  // it spins
}

TEST_F(ProgressPolicyTest, AProgramThatPollsNowAndThenKeepsItsCore) {
  for (const Duration t : {ms(0), ms(1), ms(2)}) {
    poll_empty(1, t);
    EXPECT_FALSE(policy_.should_offer_core());
  }
}

}  // namespace
}  // namespace verbena::host
