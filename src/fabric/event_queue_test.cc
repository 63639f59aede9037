#include "fabric/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/prng.h"

namespace verbena::fabric {
namespace {

Event event_at(Time at, u32 number) { return {at, EventKind::kPortWake, number}; }

TEST(EventQueue, NothingAtFirst) {
  EventQueue queue(ns(1));
  Event event;
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.take(Time::never(), event));
}

TEST(EventQueue, EqualTimesInTheOrderOfAdding) {
  EventQueue queue(ns(1));
  for (u32 i = 0; i < 100; ++i) queue.add(event_at(Time::from_ns(7), i));
  Event event;
  for (u32 i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue.take(Time::never(), event));
    EXPECT_EQ(event.place(), i);
  }
}

TEST(EventQueue, NotBeyondTheEnd) {
  EventQueue queue(ns(1));
  queue.add(event_at(Time::from_ns(5), 1));
  Event event;
  EXPECT_FALSE(queue.take(Time::from_ns(4), event));
  EXPECT_FALSE(queue.empty());
  queue.add(event_at(Time::from_ns(4), 2));  // behind what has been looked at, and before it
  ASSERT_TRUE(queue.take(Time::from_ns(5), event));
  EXPECT_EQ(event.place(), 2u);
  ASSERT_TRUE(queue.take(Time::from_ns(5), event));
  EXPECT_EQ(event.place(), 1u);
}

// Against a list that is sorted anew for each event: near, far and equal times, added all the
// while.
TEST(EventQueue, AsASortedList) {
  PRNG prng(3);
  EventQueue queue(ps(1000));
  std::vector<Event> model;
  Time now;
  u32 added = 0;
  const auto add = [&] {
    const i64 far =
        prng.chance(0.1) ? 100'000'000 : 20'000;  // beyond the calendar, and within a day
    const Event event =
        event_at(now + ps(static_cast<i64>(prng.below(static_cast<u64>(far)))), added++);
    queue.add(event);
    model.push_back(event);
  };
  for (u32 i = 0; i < 20; ++i) add();
  for (u32 i = 0; i < 20'000; ++i) {
    const auto first = std::ranges::min_element(model, {}, &Event::at);  // the first of equal ones
    Event event;
    ASSERT_TRUE(queue.take(Time::never(), event));
    ASSERT_EQ(event.at, first->at);
    ASSERT_EQ(event.place(), first->place());
    now = event.at;
    model.erase(first);
    const u64 more = model.size() < 10 ? 2 : prng.below(3);
    for (u64 n = 0; n < more && model.size() < 200; ++n) add();
  }
}

}  // namespace
}  // namespace verbena::fabric
