#include "jobs/flow_level/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace verbena::jobs {
namespace {

Paths paths(const std::vector<std::vector<u32>>& flows) {
  Paths result;
  for (const std::vector<u32>& flow : flows) {
    result.begin_flow();
    for (const u32 resource : flow) result.add(resource);
  }
  return result;
}

// Three flows meet at resource 1; what remains of 2 and 3 is for the others.
TEST(MaxMin, TheNarrowestResourceFirst) {
  const Paths p = paths({{0, 1}, {1}, {1, 2}, {2, 3}, {3}});
  const std::vector<double> rates = max_min_rates(p, {1, 1, 1, 1}, std::vector<bool>(5, true));
  EXPECT_DOUBLE_EQ(rates[0], 1.0 / 3);
  EXPECT_DOUBLE_EQ(rates[1], 1.0 / 3);
  EXPECT_DOUBLE_EQ(rates[2], 1.0 / 3);
  EXPECT_DOUBLE_EQ(rates[3], 0.5);
  EXPECT_DOUBLE_EQ(rates[4], 0.5);
}

TEST(MaxMin, WhatOthersCannotUseIsShared) {
  const Paths p = paths({{0, 1}, {1}, {1}});
  const std::vector<double> rates = max_min_rates(p, {1, 10}, std::vector<bool>(3, true));
  EXPECT_DOUBLE_EQ(rates[0], 1);
  EXPECT_DOUBLE_EQ(rates[1], 4.5);
  EXPECT_DOUBLE_EQ(rates[2], 4.5);
}

TEST(MaxMin, FlowsThatAreNotActiveTakeNothing) {
  const Paths p = paths({{0}, {0}, {}});
  const std::vector<double> rates = max_min_rates(p, {8}, {true, false, true});
  EXPECT_DOUBLE_EQ(rates[0], 8);
  EXPECT_DOUBLE_EQ(rates[1], 0);
  EXPECT_DOUBLE_EQ(rates[2], 0);
}

TEST(MaxMin, WhoEndsLeavesItsShare) {
  EXPECT_EQ(end_times(paths({{0}, {0}}), {10}, {10, 30}), (std::vector<double>{2, 4}));
  const std::vector<double> ends = end_times(paths({{0}, {0, 1}}), {10, 2}, {40, 4});
  EXPECT_DOUBLE_EQ(ends[0], 4.4);
  EXPECT_DOUBLE_EQ(ends[1], 2);
  EXPECT_EQ(end_times(paths({{0}, {}}), {10}, {0, 5}), (std::vector<double>{0, 0}));
}

// Flows of 12 units on resources 0 and 1, of which 1 is the fuller.
TEST(MaxMin, TheBusiestResourceEndsLast) {
  const Paths p = paths({{0}, {0, 1}, {1}, {1, 2}});
  const std::vector<double> capacity{10, 6, 1000}, units(4, 12);
  const std::vector<double> ends = end_times(p, capacity, units);
  EXPECT_DOUBLE_EQ(*std::ranges::max_element(ends), 6);
  EXPECT_DOUBLE_EQ(busiest_time(p, capacity, units), 6);
  EXPECT_DOUBLE_EQ(busiest_time(paths({}), capacity, {}), 0);
}

// No flow can have more without taking it from one that has no more: every flow has a full resource
// where nobody has more than it.
TEST(MaxMin, EveryFlowHasABottleneck) {
  u64 state = 1;
  const auto random = [&state](u64 below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  for (u32 run = 0; run < 50; ++run) {
    std::vector<std::vector<u32>> flows(40);
    std::vector<double> capacity(12);
    for (double& c : capacity) c = 1 + static_cast<double>(random(10));
    for (auto& flow : flows)
      for (u32 resource = 0; resource < 12; ++resource)
        if (random(4) == 0 || (resource == 11 && flow.empty())) flow.push_back(resource);
    const Paths p = paths(flows);
    const std::vector<double> rates = max_min_rates(p, capacity, std::vector<bool>(40, true));
    for (u32 f = 0; f < 40; ++f) {
      bool has_bottleneck = false;
      for (const u32 resource : flows[f]) {
        double used = 0, most = 0;
        for (u32 g = 0; g < 40; ++g)
          if (std::ranges::count(flows[g], resource) != 0) {
            used += rates[g];
            most = std::max(most, rates[g]);
          }
        EXPECT_LE(used, capacity[resource] * (1 + 1e-9));
        has_bottleneck |= used > capacity[resource] * (1 - 1e-9) && rates[f] > most * (1 - 1e-9);
      }
      EXPECT_TRUE(has_bottleneck);
    }
  }
}

}  // namespace
}  // namespace verbena::jobs
