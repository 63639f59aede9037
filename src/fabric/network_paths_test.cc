#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fabric/testing.h"

namespace verbena::fabric {
namespace {

// Hosts 0 and 1 on switches 2 and 3, two spines 4 and 5. Links 2, 3: from 2 to a spine; 4, 5: from
// 3 to a spine.
Topology two_spines() {
  Topology topology;
  for (int i = 0; i < 2; ++i) (void)topology.add_host();
  for (int i = 0; i < 4; ++i) (void)topology.add_switch();
  topology.join(0, 2, {});
  topology.join(1, 3, {});
  for (const NodeIndex spine : {4u, 5u}) topology.join(2, spine, {});
  for (const NodeIndex spine : {4u, 5u}) topology.join(3, spine, {});
  return topology;
}

// Runs flows from host 0 to host 1, and returns their paths.
std::vector<std::vector<PathHop>> paths_of(const NetworkConfig& config, u32 flows, u64 bytes) {
  const Topology topology = two_spines();
  Network network(topology, config);
  network.log_paths();
  for (u32 i = 0; i < flows; ++i)
    EXPECT_TRUE(network.add_flow({.source = 0, .destination = 1, .bytes = bytes}));
  (void)network.run(test::at_us(5'000'000));
  EXPECT_EQ(network.flows_finished(), flows);
  std::vector<std::vector<PathHop>> paths;
  for (u32 i = 0; i < flows; ++i) paths.push_back(network.path_of_flow(i));
  return paths;
}

std::set<NodeIndex> spines_of(const std::vector<PathHop>& path) {
  std::set<NodeIndex> spines;
  for (const PathHop& hop : path)
    if (hop.node >= 4) spines.insert(hop.node);
  return spines;
}

TEST(NetworkPaths, AFlowHasOnePathByItsHash) {
  std::set<NodeIndex> used;
  for (const std::vector<PathHop>& path : paths_of({}, 16, 100'000)) {
    ASSERT_EQ(path.size(), 4u);  // host, switch, spine, switch
    EXPECT_EQ(path[0], (PathHop{.node = 0, .port = 0}));
    EXPECT_EQ(path[1].node, 2u);
    EXPECT_EQ(path[1].port, path[2].node - 3);  // port 0 leads to the host, 1 to 4, 2 to 5
    EXPECT_EQ(path[2].port, 1u);
    EXPECT_EQ(path[3], (PathHop{.node = 3, .port = 0}));
    used.merge(spines_of(path));
  }
  EXPECT_EQ(used.size(), 2u);
}

TEST(NetworkPaths, SprayedFramesTakeAllPaths) {
  NetworkConfig config;
  config.switches.spreading.kind = SpreadingConfig::Kind::kPacketSpray;
  for (const std::vector<PathHop>& path : paths_of(config, 2, 100'000))
    EXPECT_EQ(spines_of(path).size(), 2u);
}

TEST(NetworkPaths, AFlowThatIsReroutedHasBoth) {
  NetworkConfig config;
  for (const u32 link : {2u, 3u})  // one after the other, so that one of them is the flow's
    config.faults.outages.push_back({.link = link,
                                     .down = test::at_us(link == 2 ? 200 : 800),
                                     .up = test::at_us(link == 2 ? 600 : 1200)});
  EXPECT_EQ(spines_of(paths_of(config, 1, 20'000'000)[0]).size(), 2u);
}

TEST(NetworkPaths, OtherTechnologiesHaveThemToo) {
  for (const Technology technology :
       {Technology::kTCP, Technology::kIWARP, Technology::kInfiniBand}) {
    NetworkConfig config;
    config.technology = technology;
    for (const std::vector<PathHop>& path : paths_of(config, 4, 100'000)) {
      EXPECT_EQ(path.size(), 4u) << static_cast<int>(technology);
      EXPECT_EQ(spines_of(path).size(), 1u) << static_cast<int>(technology);
    }
  }
}

TEST(NetworkPaths, NothingIsNotedUnlessAskedFor) {
  const Topology topology = two_spines();
  Network network(topology, {});
  ASSERT_TRUE(network.add_flow({.source = 0, .destination = 1, .bytes = 1000}));
  (void)network.run(test::at_us(1000));
  EXPECT_TRUE(network.path_of_flow(0).empty());
}

}  // namespace
}  // namespace verbena::fabric
