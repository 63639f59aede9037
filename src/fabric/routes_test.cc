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
  topology.join(s, s, {});
  EXPECT_NE(check(topology).find("linked to itself"), std::string::npos);
  topology.links.back() = {s, 9, {}};
  EXPECT_NE(check(topology).find("node 9"), std::string::npos);
  topology.links.back() = {s, a, {.rate = Rate()}};
  EXPECT_NE(check(topology).find("no rate"), std::string::npos);
  topology.links.pop_back();
  for (u32 i = 0; i < Topology::kMostLinksOfHost; ++i) topology.join(a, s, {});
  EXPECT_NE(check(topology).find("host 0 has more than"), std::string::npos);
}

// Hosts 0 and 1 on the leaves 2 and 3 of one plane and 4 and 5 of the other; spines 6 and 7.
struct TwoPlanes : ::testing::Test {
  TwoPlanes() {
    for (int i = 0; i < 2; ++i) (void)topology.add_host();
    for (int i = 0; i < 6; ++i) (void)topology.add_switch();
    for (const NodeIndex host : {0u, 1u})
      for (const NodeIndex plane : {0u, 1u}) topology.join(host, 2 + 2 * plane + host, {});
    for (const NodeIndex leaf : {2u, 3u, 4u, 5u}) topology.join(leaf, leaf < 4 ? 6 : 7, {});
  }
  std::vector<NodeIndex> next(NodeIndex from, NodeIndex to, std::vector<bool> down = {}) {
    return next_nodes(topology, Routes(topology, down), from, to);
  }
  Topology topology;
};

TEST_F(TwoPlanes, AHostOfSeveralLinksIsReachedByAnyOfThem) {
  EXPECT_EQ(check(topology), "");
  EXPECT_EQ(next(0, 1), (std::vector<NodeIndex>{4, 2}));
  EXPECT_EQ(next(6, 1), (std::vector<NodeIndex>{3}));
  EXPECT_EQ(next(7, 1), (std::vector<NodeIndex>{5}));
  EXPECT_EQ(next(3, 1), (std::vector<NodeIndex>{1}));
  EXPECT_EQ(next(5, 1), (std::vector<NodeIndex>{1}));
}

// Link 2 is the first of host 1: its plane has no way to it any more.
TEST_F(TwoPlanes, APlaneThatHasLostTheHostIsNoWay) {
  const std::vector<bool> down = {false, false, true, false, false, false, false, false};
  EXPECT_EQ(next(0, 1, down), (std::vector<NodeIndex>{4}));
  EXPECT_TRUE(next(2, 1, down).empty());
  EXPECT_EQ(next(1, 0, down), (std::vector<NodeIndex>{5}));
}

TEST(Routes, SeveralLinksBetweenTwoNodesAreAllUsedUnlessAskedOtherwise) {
  Topology topology;
  const NodeIndex a = topology.add_host(), b = topology.add_host();
  const NodeIndex left = topology.add_switch(), right = topology.add_switch();
  for (int i = 0; i < 2; ++i) {
    topology.join(a, left, {});
    topology.join(left, right, {});
  }
  topology.join(right, b, {});
  const Routes all(topology), last(topology, {}, ParallelLinks::kLast);
  EXPECT_EQ(all.ports(a, b).size(), 2u);
  EXPECT_EQ(all.ports(left, b).size(), 2u);
  EXPECT_EQ(all.ports(left, a).size(), 2u);
  EXPECT_EQ(last.ports(a, b).size(), 1u);
  EXPECT_EQ(last.ports(left, b)[0], 3u);
  EXPECT_EQ(last.ports(left, a)[0], 2u);
}

}  // namespace
}  // namespace verbena::fabric
