#include "fabric/partition.h"

#include <gtest/gtest.h>

namespace verbena::fabric {
namespace {

// `leaves` of two hosts each, all joined to all `spines`.
Topology leaf_spine(u32 leaves, u32 spines) {
  Topology topology;
  for (u32 host = 0; host < 2 * leaves; ++host) (void)topology.add_host();
  for (u32 leaf = 0; leaf < leaves; ++leaf) {
    const NodeIndex node = topology.add_switch();
    for (const NodeIndex host : {2 * leaf, 2 * leaf + 1}) topology.join(host, node, {});
  }
  for (u32 spine = 0; spine < spines; ++spine) {
    const NodeIndex node = topology.add_switch();
    for (u32 leaf = 0; leaf < leaves; ++leaf) topology.join(2 * leaves + leaf, node, {});
  }
  return topology;
}

TEST(Partition, AllIsOneDomainsWhereThereIsOne) {
  EXPECT_EQ(partition(leaf_spine(2, 1), 1), std::vector<u32>(7, 0));
}

TEST(Partition, ALeafGoesWithItsHosts) {
  const std::vector<u32> domains = partition(leaf_spine(4, 2), 2);
  for (u32 leaf = 0; leaf < 4; ++leaf) {
    EXPECT_EQ(domains[2 * leaf], leaf / 2);
    EXPECT_EQ(domains[8 + leaf], leaf / 2);
  }
}

// Each spine has two leaves in one domain and three in the other: not all go to that one.
TEST(Partition, EachDomainHasItsShareThoughOneHasMoreNeighbours) {
  const Topology topology = leaf_spine(5, 16);
  const std::vector<u32> domains = partition(topology, 2);
  std::array<u32, 2> links{};
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b}) ++links[domains[node]];
  const u32 share = (links[0] + links[1]) / 2;
  EXPECT_LT(std::max(links[0], links[1]), share + 5);  // a spine's links
}

}  // namespace
}  // namespace verbena::fabric
