#include <gtest/gtest.h>

#include <set>

#include "fabric/topologies/rail_optimized.h"
#include "fabric/topologies/star.h"
#include "fabric/workloads/all_to_all.h"
#include "fabric/workloads/permutation.h"
#include "fabric/workloads/poisson.h"

namespace verbena::fabric {
namespace {

TEST(Workloads, APermutationHasEveryHostOnceAtEachEnd) {
  const Plan plan = fabric::star(17, {});
  PRNG prng(5);
  std::set<NodeIndex> sources, destinations;
  for (const Flow& flow : permutation(plan, 1000, Time(), prng)) {
    EXPECT_NE(flow.source, flow.destination);
    sources.insert(flow.source);
    destinations.insert(flow.destination);
  }
  EXPECT_EQ(sources.size(), 17u);
  EXPECT_EQ(destinations.size(), 17u);
}

TEST(Workloads, AllToAllStaysOnAnIsland) {
  const Plan plan = rail_optimized({.nodes = 3, .rails = 2, .groups = 1, .spines = 0}, {});
  const std::vector<Flow> flows = all_to_all(plan, 1000, Time());
  EXPECT_EQ(flows.size(), 2u * 3 * 2);
  for (const Flow& flow : flows) EXPECT_EQ(flow.source % 2, flow.destination % 2);
}

TEST(Workloads, PoissonBringsItsLoad) {
  const Plan plan = fabric::star(8, {.rate = gbps(100)});
  PRNG prng(2);
  const Poisson spec{.sizes = SizeDistribution::always(10'000), .load = 0.4, .duration = ms(10)};
  u64 bytes = 0;
  Time before{};
  for (const Flow& flow : poisson(plan, spec, prng)) {
    bytes += flow.bytes;
    EXPECT_NE(flow.source, flow.destination);
    EXPECT_GE(flow.start, before);
    before = flow.start;
  }
  EXPECT_LT(before, Time() + ms(10));
  EXPECT_NEAR(static_cast<double>(bytes) * 8 / 0.01 / (8 * 100e9), 0.4, 0.01);
}

}  // namespace
}  // namespace verbena::fabric
