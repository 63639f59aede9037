#include "device/qp/timer_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/prng.h"

namespace verbena {
namespace {

Time at(i64 nanoseconds) { return Time::from_ns(nanoseconds); }

struct TimerQueueTest : ::testing::Test {
  QueuePair a{{}, {}}, b{{}, {}}, c{{}, {}};
  TimerQueue timers{&QueuePair::timer_position};
};

TEST_F(TimerQueueTest, ComesInOrderOfTime) {
  EXPECT_EQ(timers.next(), Time::never());
  timers.update(a, at(30));
  timers.update(b, at(10));
  timers.update(c, at(20));
  EXPECT_EQ(timers.next(), at(10));
  EXPECT_EQ(timers.pop_due(at(9)), nullptr);
  EXPECT_EQ(timers.pop_due(at(30)), &b);
  EXPECT_EQ(timers.pop_due(at(30)), &c);
  EXPECT_EQ(timers.pop_due(at(29)), nullptr);
  EXPECT_EQ(timers.pop_due(at(30)), &a);
  EXPECT_EQ(timers.next(), Time::never());
}

TEST_F(TimerQueueTest, ALaterDeadlineLeavesTheEntryAlone) {
  timers.update(a, at(10));
  timers.update(a, at(50));
  EXPECT_EQ(timers.next(), at(10));
  timers.update(a, Time::never());
  EXPECT_EQ(timers.next(), at(10));
  EXPECT_EQ(timers.size(), 1u);
}

TEST_F(TimerQueueTest, AnEarlierDeadlineMovesTheEntry) {
  timers.update(a, at(10));
  timers.update(b, at(20));
  timers.update(b, at(5));
  EXPECT_EQ(timers.pop_due(at(100)), &b);
  EXPECT_EQ(timers.size(), 1u);
}

TEST_F(TimerQueueTest, RemovedIsGone) {
  timers.update(a, at(10));
  timers.update(b, at(20));
  timers.remove(a);
  timers.remove(a);
  timers.remove(c);
  EXPECT_EQ(timers.pop_due(at(100)), &b);
  EXPECT_EQ(timers.pop_due(at(100)), nullptr);
}

// Against a plain map, by 20,000 random steps.
TEST_F(TimerQueueTest, AgreesWithAModel) {
  PRNG prng(7);
  std::vector<std::unique_ptr<QueuePair>> qps;
  for (int i = 0; i < 50; ++i) qps.push_back(std::make_unique<QueuePair>(QPInit{}, QPAttributes{}));
  std::map<QueuePair*, Time> model;
  for (int step = 0; step < 20'000; ++step) {
    QueuePair& qp = *qps[prng.below(qps.size())];
    if (prng.chance(0.2)) {
      timers.remove(qp);
      model.erase(&qp);
    } else if (prng.chance(0.2)) {
      const Time now = timers.next();
      QueuePair* const popped = timers.pop_due(now);
      ASSERT_EQ(popped == nullptr, model.empty());
      if (popped != nullptr) {
        for (const auto& [other, time] : model) ASSERT_LE(model[popped], time);
        model.erase(popped);
      }
    } else {
      const Time time = at(static_cast<i64>(prng.below(1000)));
      timers.update(qp, time);
      const auto [entry, is_new] = model.emplace(&qp, time);
      entry->second = std::min(entry->second, time);
    }
    ASSERT_EQ(timers.size(), model.size());
  }
}

}  // namespace
}  // namespace verbena
