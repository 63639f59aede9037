#include "fabric/routes.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbena::fabric {
namespace {

std::vector<NodeIndex> next_nodes(const Topology& topology, const Routes& routes, NodeIndex from,
                                  NodeIndex to) {
  std::vector<std::vector<NodeIndex>> by_port(topology.nodes);
  for (const TopologyLink& link : topology.links) {
    by_port[link.a].push_back(link.b);
    by_port[link.b].push_back(link.a);
  }
  std::vector<NodeIndex> nodes;
  for (const u16 port : routes.ports(from, to)) nodes.push_back(by_port[from][port]);
  return nodes;
}

// Two hosts (0, 1) on a leaf each (2, 3), which three spines (4 .. 6) join; host 7 is alone.
struct LeafSpine : ::testing::Test {
  LeafSpine() {
    for (int i = 0; i < 2; ++i) (void)topology.add_host();
    for (int i = 0; i < 5; ++i) (void)topology.add_switch();
    (void)topology.add_host();
    topology.join(0, 2, {});
    topology.join(1, 3, {});
    for (NodeIndex spine = 4; spine <= 6; ++spine)
      for (NodeIndex leaf = 2; leaf <= 3; ++leaf) topology.join(leaf, spine, {});
  }
  Topology topology;
};

TEST_F(LeafSpine, AllShortestWaysTheHighestNumberFirst) {
  EXPECT_EQ(check(topology), "");
  const Routes routes(topology);
  const auto next = [&](NodeIndex from, NodeIndex to) {
    return next_nodes(topology, routes, from, to);
  };
  EXPECT_EQ(next(0, 1), (std::vector<NodeIndex>{2}));
  EXPECT_EQ(next(2, 1), (std::vector<NodeIndex>{6, 5, 4}));
  EXPECT_EQ(next(5, 1), (std::vector<NodeIndex>{3}));
  EXPECT_EQ(next(3, 1), (std::vector<NodeIndex>{1}));
  EXPECT_EQ(next(3, 0), (std::vector<NodeIndex>{6, 5, 4}));
  EXPECT_TRUE(next(0, 7).empty());
  EXPECT_TRUE(next(7, 0).empty());
}

TEST(Routes, TwoHostsWithoutASwitch) {
  Topology topology;
  const NodeIndex a = topology.add_host(), b = topology.add_host();
  topology.join(a, b, {});
  const Routes routes(topology);
  EXPECT_EQ(next_nodes(topology, routes, a, b), (std::vector<NodeIndex>{b}));
  EXPECT_EQ(next_nodes(topology, routes, b, a), (std::vector<NodeIndex>{a}));
}

TEST(TopologyCheck, NamesWhatIsWrong) {
  Topology topology;
  const NodeIndex a = topology.add_host(), b = topology.add_host(), s = topology.add_switch();
  topology.join(a, s, {});
  topology.join(b, s, {});
  EXPECT_EQ(check(topology), "");
  topology.join(a, b, {});
  EXPECT_NE(check(topology).find("host 0 has several links"), std::string::npos);
  topology.links.back() = {s, s, {}};
  EXPECT_NE(check(topology).find("linked to itself"), std::string::npos);
  topology.links.back() = {s, 9, {}};
  EXPECT_NE(check(topology).find("node 9"), std::string::npos);
  topology.links.back() = {s, a, {.rate = Rate()}};
  EXPECT_NE(check(topology).find("no rate"), std::string::npos);
}

}  // namespace
}  // namespace verbena::fabric
