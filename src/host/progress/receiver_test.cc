#include "host/progress/receiver.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/prng.h"
#include "host/progress/progress_policy.h"

namespace verbena::host {
namespace {

constexpr Receiver mode(std::size_t i) { return static_cast<Receiver>(i); }
constexpr ReceiverEvent event(std::size_t i) { return static_cast<ReceiverEvent>(i); }

// The transitions that are no standstill, each with its reason in receiver.h.
struct Transition {
  Receiver from;
  ReceiverEvent event;
  Receiver to;
};
const std::vector<Transition> kTransitions = {
    {Receiver::kHelper, ReceiverEvent::kCallsSuffice, Receiver::kCalls},
    {Receiver::kHelper, ReceiverEvent::kCallsOften, Receiver::kRestingHelper},
    {Receiver::kHelper, ReceiverEvent::kPollStays, Receiver::kStayingPoll},
    {Receiver::kHelper, ReceiverEvent::kWaiterLooks, Receiver::kLookingWaiter},
    {Receiver::kRestingHelper, ReceiverEvent::kHelperNeeded, Receiver::kHelper},
    {Receiver::kRestingHelper, ReceiverEvent::kRestOver, Receiver::kHelper},
    {Receiver::kRestingHelper, ReceiverEvent::kCallsSuffice, Receiver::kCalls},
    {Receiver::kRestingHelper, ReceiverEvent::kPollStays, Receiver::kStayingPoll},
    {Receiver::kRestingHelper, ReceiverEvent::kWaiterLooks, Receiver::kLookingWaiter},
    {Receiver::kCalls, ReceiverEvent::kHelperNeeded, Receiver::kHelper},
    {Receiver::kCalls, ReceiverEvent::kPollStays, Receiver::kStayingPoll},
    {Receiver::kCalls, ReceiverEvent::kWaiterLooks, Receiver::kLookingWaiter},
    {Receiver::kStayingPoll, ReceiverEvent::kHelperNeeded, Receiver::kHelper},
    {Receiver::kStayingPoll, ReceiverEvent::kWaiterLooks, Receiver::kLookingWaiter},
    {Receiver::kStayingPoll, ReceiverEvent::kStayOver, Receiver::kCalls},
    {Receiver::kLookingWaiter, ReceiverEvent::kWaiterSleeps, Receiver::kSleepingWaiter},
    {Receiver::kLookingWaiter, ReceiverEvent::kWaiterLeaves, Receiver::kCalls},
    {Receiver::kSleepingWaiter, ReceiverEvent::kWaiterLooks, Receiver::kLookingWaiter},
    {Receiver::kSleepingWaiter, ReceiverEvent::kWaiterLeaves, Receiver::kCalls},
};

TEST(ReceiverTest, EveryTransitionIsListed) {
  std::size_t moves = 0;
  for (std::size_t from = 0; from < kReceivers; ++from)
    for (std::size_t what = 0; what < kReceiverEvents; ++what)
      moves += next_receiver(mode(from), event(what)) != mode(from) ? 1 : 0;
  EXPECT_EQ(moves, kTransitions.size());
  for (const auto& [from, what, to] : kTransitions) EXPECT_EQ(next_receiver(from, what), to);
}

TEST(ReceiverTest, TheHelperIsReachedFromEachModeByNeedOnceNobodyWaits) {
  for (std::size_t from = 0; from < kReceivers; ++from) {
    const Receiver left = next_receiver(mode(from), ReceiverEvent::kWaiterLeaves);
    EXPECT_EQ(next_receiver(left, ReceiverEvent::kHelperNeeded), Receiver::kHelper);
  }
}

// A policy and a program that does anything, at any time.
class Walk {
 public:
  Walk(u64 seed, Completes completes)
      : random_(seed), waits_for_events_(seed % 2 == 0), policy_(completes) {}

  const ProgressPolicy& policy() const { return policy_; }
  void step() {
    now_ = now_ + us(static_cast<i64>(random_.in(0, random_.in(0, 9) == 0 ? 2000 : 20)));
    switch (random_.in(0, 11)) {
      case 0:
      case 1: return poll();
      case 2: return policy_.on_application_post(now_);
      case 3: return policy_.on_application_request();
      case 4: return policy_.on_receipt_in_poll(now_);
      case 5: return policy_.on_requested(chance() ? Requested::kSome : Requested::kNone);
      case 6: return waits_for_events_ ? policy_.on_notification_request() : poll();
      case 7: return wait();
      case 8: return look();
      case 9: return stay();
      case 10: return random_.in(0, 7) == 0 ? policy_.on_application_sleep() : help();
      default: return help();
    }
  }
  // The program does nothing more. Its threads that stay or look end that in time.
  void stop_calling() {
    for (u32 i = 0; i < 10'000 && policy_.should_stay(); ++i) advance_stay();
    if (policy_.receiver() == Receiver::kLookingWaiter) end_looks();
  }
  void end_wait() {
    if (is_waiting()) policy_.on_wait_over(chance() ? Sleepers::kNone : Sleepers::kSome, now_);
  }
  bool helper_wakes() {
    now_ = std::max(now_, policy_.is_listened_to() ? now_ : policy_.next_check());
    return policy_.on_helper_wake(now_);
  }

 private:
  bool chance() { return random_.in(0, 1) == 0; }
  void poll() {
    const u64 polls = random_.in(1, 4);
    const auto result = static_cast<PollResult>(random_.in(0, 3));
    for (u64 i = 0; i < polls; ++i) policy_.on_application_poll(result, now_);
  }
  bool is_waiting() const {
    return policy_.receiver() == Receiver::kLookingWaiter ||
           policy_.receiver() == Receiver::kSleepingWaiter;
  }
  void wait() { (void)policy_.on_wait(now_); }
  void look() {
    if (!is_waiting()) return;
    if (policy_.receiver() == Receiver::kSleepingWaiter) policy_.on_wake_in_wait(now_);
    policy_.on_look_in_wait(chance() ? LookResult::kReceived : LookResult::kNothing, now_);
    chance() ? end_looks() : end_wait();
  }
  void end_looks() {
    policy_.should_sleep_on_link() ? policy_.on_sleep_in_wait() : policy_.on_vain_wakes(now_);
  }
  void stay() {
    if (policy_.should_stay())
      policy_.on_stay(chance() ? LookResult::kReceived : LookResult::kNothing, now_);
  }
  void advance_stay() {
    now_ = now_ + us(10);
    policy_.on_stay(LookResult::kNothing, now_);
  }
  void help() {
    if (policy_.on_helper_wake(now_) && chance())
      policy_.on_helper_received(chance() ? Calls::kOften : Calls::kSeldom, now_);
  }

  PRNG random_;
  bool waits_for_events_;
  Time now_ = Time() + sec(100);
  ProgressPolicy policy_;
};

class ReceiverWalkTest : public testing::TestWithParam<Completes> {};

TEST_P(ReceiverWalkTest, APolicyReachesEachModeAndKeepsItsPromises) {
  std::set<Receiver> reached;
  for (u64 seed = 1; seed <= 40; ++seed) {
    Walk walk(seed, GetParam());
    for (int i = 0; i < 5'000; ++i) {
      walk.step();
      const ProgressPolicy& policy = walk.policy();
      ASSERT_LT(static_cast<std::size_t>(policy.receiver()), kReceivers);
      ASSERT_EQ(policy.listens(), policy.receiver() == Receiver::kHelper);
      ASSERT_EQ(policy.is_listened_to(), policy.next_check() == Time::never());
      reached.insert(policy.receiver());
    }
  }
  EXPECT_EQ(reached.size(), kReceivers);
}

// No packet waits for ever, whatever the program did before it stopped calling.
TEST_P(ReceiverWalkTest, AThreadSoonListensForAProgramThatStopsCalling) {
  u32 waiters = 0;
  for (u64 seed = 1; seed <= 200; ++seed) {
    Walk walk(seed, GetParam());
    for (u64 i = 0; i < 200 + seed; ++i) walk.step();
    walk.stop_calling();
    EXPECT_TRUE(walk.helper_wakes() || walk.helper_wakes()) << seed;
    EXPECT_TRUE(walk.policy().is_listened_to()) << seed;
    waiters += walk.policy().listens() ? 0 : 1;
    walk.end_wait();  // as a thread that is cancelled
    EXPECT_TRUE(walk.helper_wakes() || walk.helper_wakes()) << seed;
    EXPECT_TRUE(walk.policy().listens()) << seed;
  }
  EXPECT_GT(waiters, 0u);
  EXPECT_LT(waiters, 200u);
}

// Others may have its core. The helper then looks again and again, and not without a pause.
TEST_P(ReceiverWalkTest, TheHelperReceivesInThePlaceOfAWaiterThatDoesNotGoOn) {
  ProgressPolicy policy(GetParam());
  Time now = Time() + sec(100);
  ASSERT_TRUE(policy.on_wait(now));
  u32 received = 0;
  for (u32 wake = 0; wake < 10; ++wake) {
    ASSERT_GT(policy.next_check(), now);
    now = policy.next_check();
    received += policy.on_helper_wake(now) ? 1 : 0;
  }
  EXPECT_GE(received, 9u);
  EXPECT_EQ(policy.receiver(), Receiver::kLookingWaiter);
}

INSTANTIATE_TEST_SUITE_P(Both, ReceiverWalkTest,
                         testing::Values(Completes::kWhenAnswered, Completes::kWhenSent));

}  // namespace
}  // namespace verbena::host
