#include "fabric/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace verbena::fabric {
namespace {

constexpr u32 kNodes = 8;

// One port each.
std::vector<u32> nodes_of_ports() {
  std::vector<u32> nodes;
  for (u32 node = 0; node < kNodes; ++node) nodes.push_back(node);
  return nodes;
}

Event event_at(i64 ps_, u32 place, u32 subject = 0) {
  return {Time::from_ps(ps_), EventKind::kPortWake, place, subject};
}

struct Queue {
  explicit Queue(Duration window) : nodes(nodes_of_ports()), events(Windows(window), nodes) {}
  // The next window's events, as they are taken.
  std::vector<Event> window(Time end = Time::never()) {
    std::vector<Event> taken;
    events.open(events.next_window(0));
    while (events.next_node())
      for (Event event; events.take(end, event);) taken.push_back(event);
    return taken;
  }
  const std::vector<u32> nodes;
  EventQueue events;
};

TEST(EventQueue, NothingAtFirst) {
  Queue queue(ns(1));
  EXPECT_TRUE(queue.events.empty());
  EXPECT_EQ(queue.events.next_window(0), EventQueue::kNever);
}

TEST(EventQueue, ANodesEventsOfAWindowComeTogether) {
  Queue queue(ns(1));
  for (const Event& event : {event_at(10, 1), event_at(20, 2), event_at(30, 1), event_at(5, 2)})
    queue.events.add(event);
  const std::vector<Event> taken = queue.window();
  ASSERT_EQ(taken.size(), 4u);
  EXPECT_EQ(taken[0].place(), taken[1].place());
  EXPECT_EQ(taken[2].place(), taken[3].place());
  EXPECT_LT(taken[0].at, taken[1].at);
  EXPECT_LT(taken[2].at, taken[3].at);
  EXPECT_TRUE(queue.events.empty());
}

TEST(EventQueue, EqualTimesByKindRankPlaceAndOrderOfAdding) {
  std::vector<Event> sorted;
  for (const EventKind kind : {EventKind::kFlowStart, EventKind::kArrival, EventKind::kPortWake})
    for (const u64 rank : {1u, 2u})
      for (const u32 place : {0u, 3u})
        for (const u32 subject : {9u, 8u})  // not sorted by
          sorted.emplace_back(Time::from_ps(500), kind, place, subject, rank);
  PRNG prng(1);
  for (u32 round = 0; round < 20; ++round) {
    std::vector<Event> added = sorted;
    for (std::size_t i = added.size() / 2; i > 1; --i) {  // pairs stay in order
      const std::size_t other = prng.below(i);
      for (const std::size_t half : {0u, 1u})
        std::swap(added[2 * (i - 1) + half], added[2 * other + half]);
    }
    Queue queue(ns(1));
    queue.events.keep_together();
    for (const Event& event : added) queue.events.add(event);
    const std::vector<Event> taken = queue.window();
    ASSERT_EQ(taken.size(), sorted.size());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      EXPECT_EQ(taken[i].what, sorted[i].what);
      EXPECT_EQ(taken[i].rank, sorted[i].rank);
      EXPECT_EQ(taken[i].subject, sorted[i].subject);
    }
  }
}

TEST(EventQueue, WhatIsAfterTheEndStays) {
  Queue queue(ns(10));
  queue.events.add(event_at(5000, 1));
  EXPECT_TRUE(queue.window(Time::from_ps(4999)).empty());
  EXPECT_FALSE(queue.events.empty());
  queue.events.add(event_at(4999, 2));
  EXPECT_EQ(queue.window(Time::from_ps(5000)).size(), 2u);
}

TEST(EventQueue, WhatIsAddedToTheRunningWindowTakesItsPlace) {
  Queue queue(ns(10));
  for (const i64 at : {100, 300, 500}) queue.events.add(event_at(at, 1));
  queue.events.open(queue.events.next_window(0));
  ASSERT_TRUE(queue.events.next_node());
  std::vector<i64> times;
  for (Event event; queue.events.take(Time::never(), event);) {
    times.push_back(event.at.ps());
    if (times.size() == 2) {
      queue.events.add(event_at(400, 1));
      queue.events.add(event_at(200, 1));     // late: it happens now
      queue.events.add(event_at(10'000, 1));  // the next window
    }
  }
  EXPECT_EQ(times, (std::vector<i64>{100, 300, 300, 400, 500}));
  EXPECT_FALSE(queue.events.next_node());
  EXPECT_EQ(queue.events.next_window(0), 1u);
}

TEST(EventQueue, SidesTakeTurnsByTwoNotices) {
  const std::vector<u32> nodes = nodes_of_ports();
  const std::vector<u8> sides = {0, 1, 0, 1, 0, 1, 0, 1};
  EventQueue events(Windows(ps(1000), sides), nodes);
  for (const i64 at : {500, 1500, 2500, 3500})
    for (const u32 place : {2u, 3u}) events.add(event_at(at, place));
  std::vector<std::pair<u32, i64>> taken;
  for (u64 from = 0, window; (window = events.next_window(from)) != EventQueue::kNever;
       from = window + 1) {
    events.open(window);
    while (events.next_node())
      for (Event event; events.take(Time::never(), event);)
        taken.emplace_back(event.place(), event.at.ps());
  }
  EXPECT_EQ(
      taken,
      (std::vector<std::pair<u32, i64>>{
          {2, 500}, {3, 500}, {3, 1500}, {2, 1500}, {2, 2500}, {3, 2500}, {3, 3500}, {2, 3500}}));
}

// The next run takes the events that are left of both sides' windows, and those added to them.
TEST(EventQueue, BothSidesStopAtTheEnd) {
  const std::vector<u32> nodes = nodes_of_ports();
  const std::vector<u8> sides = {0, 1, 0, 1, 0, 1, 0, 1};
  EventQueue events(Windows(ps(1000), sides), nodes);
  for (const i64 at : {1100, 1900})
    for (const u32 place : {2u, 3u}) events.add(event_at(at, place));
  const auto run = [&events](Time end) {
    u32 taken = 0;
    for (u64 from = 0, window; (window = events.next_window(from)) != EventQueue::kNever &&
                               events.start_of(window) <= end;
         from = window + 1) {
      events.open(window);
      while (events.next_node())
        for (Event event; events.take(end, event);) ++taken;
    }
    return taken;
  };
  EXPECT_EQ(run(Time::from_ps(1500)), 2u);
  for (const u32 place : {2u, 3u}) events.add(event_at(1600, place));
  EXPECT_EQ(run(Time::from_ps(2000)), 4u);
  EXPECT_TRUE(events.empty());
}

// Against a list that is sorted anew: few and many events in a window, near and far ones.
class AgainstAList : public testing::TestWithParam<u32> {};

TEST_P(AgainstAList, EachNodeSeesItsEventsInOrder) {
  PRNG prng(3);
  Queue queue(ps(1000));
  std::vector<std::vector<Event>> model(kNodes);
  i64 now = 0;
  u32 added = 0;
  const auto add = [&](u32 node, i64 from) {
    const u64 far = prng.chance(0.1) ? 100'000'000 : 5'000;  // beyond the calendar, and near
    const Event event = event_at(from + static_cast<i64>(prng.below(far)), node, added++);
    queue.events.add(event);
    model[node].push_back(event);
  };
  const auto before = [](const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.subject < b.subject;
  };
  for (u32 i = 0; i < GetParam(); ++i) add(static_cast<u32>(prng.below(kNodes)), now);
  for (u32 left = 20'000; left > 0 && !queue.events.empty();) {
    queue.events.open(queue.events.next_window(0));
    while (queue.events.next_node()) {
      for (Event event; queue.events.take(Time::never(), event);) {
        std::vector<Event>& of_node = model[event.place()];
        const auto first = std::ranges::min_element(of_node, before);
        ASSERT_EQ(event.at, first->at);
        ASSERT_EQ(event.subject, first->subject);
        of_node.erase(first);
        if (left > 0 && --left > 0) add(event.place(), event.at.ps());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, AgainstAList, testing::Values(1, 20, 300, 20'000));

}  // namespace
}  // namespace verbena::fabric
