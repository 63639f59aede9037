#include "fabric/windows.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "fabric/testing.h"

namespace verbena::fabric {
namespace {

using test::Course;

// Hosts on two leaves, which two spines join.
Topology two_leaves() {
  Topology topology;
  for (u32 i = 0; i < 8; ++i) (void)topology.add_host();
  std::vector<NodeIndex> leaves{topology.add_switch(), topology.add_switch()};
  const std::vector<NodeIndex> spines{topology.add_switch(), topology.add_switch()};
  for (u32 i = 0; i < 8; ++i) topology.join(i, leaves[i / 4], {});
  for (const NodeIndex leaf : leaves)
    for (const NodeIndex spine : spines) topology.join(leaf, spine, {});
  return topology;
}

TEST(Windows, LeavesAndSpinesAreOnTwoSides) {
  EXPECT_EQ(sides_of(two_leaves()), (std::vector<u8>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0}));
}

TEST(Windows, NoSidesWhereAWayHasAnOddNumberOfLinks) {
  Topology dumbbell;
  for (u32 i = 0; i < 2; ++i) (void)dumbbell.add_host();
  for (u32 i = 0; i < 2; ++i) {
    (void)dumbbell.add_switch();
    dumbbell.join(i, 2 + i, {});
  }
  dumbbell.join(2, 3, {});
  EXPECT_TRUE(sides_of(dumbbell).empty());
}

TEST(Windows, SwitchesWithoutHostsHaveSidesToo) {
  Topology topology = two_leaves();
  const NodeIndex a = topology.add_switch(), b = topology.add_switch();
  topology.join(a, b, {});
  const std::vector<u8> sides = sides_of(topology);
  ASSERT_EQ(sides.size(), topology.nodes);
  EXPECT_NE(sides[a], sides[b]);
}

// A time lies in its window, and what is sent then arrives in a later one, of the other side.
TEST(Windows, WhatIsSentArrivesInALaterOne) {
  const std::vector<u8> sides = {0, 1};
  const Duration notice = ps(1000);
  const Windows windows(notice, sides);
  PRNG prng(1);
  for (u32 i = 0; i < 10'000; ++i) {
    const u32 side = i % 2;
    const Time at = Time::from_ps(static_cast<i64>(prng.below(20'000)));
    const u64 window = windows.window_of(at, side);
    ASSERT_LE(windows.start_of(window), at);
    ASSERT_LT(at, windows.start_of(window) + windows.length());
    ASSERT_EQ(window % 2, side);
    ASSERT_GT(windows.window_of(at + notice, side ^ 1), window);
    ASSERT_GT(windows.window_of(at + notice * 2, side), window);
  }
}

// window_after(), from windows of both sides, for what comes soon and what comes late.
TEST(Windows, AfterTheStartOfAWindowTheyAreTheSame) {
  const std::vector<u8> sides = {0, 1};
  const Duration notice = ps(1000);
  PRNG prng(2);
  for (const Windows& windows : {Windows(notice), Windows(notice, sides)})
    for (u32 i = 0; i < 10'000; ++i) {
      const bool alternates = windows.order() == Windows::Order::kAlternate;
      const u32 side = alternates ? i % 2 : 0;
      const u64 window =
          windows.window_of(Time::from_ps(static_cast<i64>(prng.below(20'000))), side);
      const Duration since = ps(static_cast<i64>(1000 + prng.below(i % 4 == 0 ? 50'000 : 4'000)));
      const Time at = windows.start_of(window) + since;
      ASSERT_EQ(windows.window_after(window, since, Windows::Side::kOwn),
                windows.window_of(at, side));
      ASSERT_EQ(windows.window_after(window, since, Windows::Side::kOther),
                windows.window_of(at, alternates ? side ^ 1 : 0));
    }
}

// Where signals may come sooner than after two links' delays all nodes go on together. (Flows start
// with the first window: a QP that is made while others send has its first turn by when it is
// made.)
TEST(Windows, ResultsDoNotDependOnThem) {
  std::vector<Flow> flows;
  for (u32 i = 0; i < 32; ++i)
    flows.push_back({.source = i % 8,
                     .destination = (i + 1 + i / 8) % 8,
                     .bytes = 20'000 + 7'000 * u64{i},
                     .source_port = static_cast<u16>(50'000 + i),
                     .destination_port = 100});
  NetworkConfig config = test::pfc_alone();
  config.switches.buffer.size = 400'000;
  const Course alternate(two_leaves(), config, flows);
  config.threads = 3;
  const Course by_three(two_leaves(), config, flows);
  EXPECT_EQ(by_three.ends.finished, alternate.ends.finished);
  EXPECT_EQ(by_three.network.counters(), alternate.network.counters());
  config.threads = 1;
  config.shortest_signal = us(1);
  const Course each(two_leaves(), config, flows);
  EXPECT_EQ(alternate.ends.finished, each.ends.finished);
  EXPECT_EQ(alternate.network.counters(), each.network.counters());
  EXPECT_GT(each.network.counters().pauses, 0u);
}

}  // namespace
}  // namespace verbena::fabric
