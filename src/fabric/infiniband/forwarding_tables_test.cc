#include "fabric/infiniband/forwarding_tables.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/prng.h"
#include "fabric/topologies/fat_tree.h"
#include "fabric/topologies/leaf_spine.h"
#include "fabric/topologies/rail_optimized.h"

namespace verbena::fabric {
namespace {

using Channel = std::pair<NodeIndex, u16>;  // a node's port

// A topology with its routes: ways of packets, and what they make wait for each other.
class Routed {
 public:
  Routed(const Topology& topology, RoutingEngine engine, const std::vector<bool>& down = {})
      : topology_(topology), tables_(topology, engine, down), peers_(topology.nodes) {
    links_.resize(topology.nodes);
    for (const TopologyLink& link : topology.links) {
      peers_[link.a].push_back(link.b);
      peers_[link.b].push_back(link.a);
      for (const NodeIndex node : {link.a, link.b}) links_[node].push_back(&link);
    }
  }

  // Returns an empty path if there is none, or if it has no end.
  [[nodiscard]] std::vector<Channel> way(NodeIndex from, NodeIndex to) const {
    std::vector<Channel> way;
    for (NodeIndex node = from; node != to; node = peers_[node][way.back().second]) {
      const std::span<const u16> ports = tables_.ports(node, to);
      if (ports.empty() || way.size() > topology_.nodes) return {};
      way.emplace_back(node, ports[0]);
    }
    return way;
  }

  [[nodiscard]] const TopologyLink* link_at(const Channel& channel) const {
    return links_[channel.first][channel.second];
  }

  [[nodiscard]] std::vector<NodeIndex> hosts() const {
    std::vector<NodeIndex> hosts;
    for (NodeIndex node = 0; node < topology_.nodes; ++node)
      if (!topology_.is_switch[node]) hosts.push_back(node);
    return hosts;
  }

  // Returns whether a buffer can wait for itself: a circle of channels, each followed by the next
  // on some path. Dally and Seitz, Deadlock-Free Message Routing, 1987.
  [[nodiscard]] bool is_cyclic() const {
    std::map<Channel, std::set<Channel>> next;
    for (const NodeIndex from : hosts())
      for (const NodeIndex to : hosts()) {
        if (from == to) continue;
        const std::vector<Channel> all = way(from, to);
        for (std::size_t i = 0; i + 1 < all.size(); ++i) next[all[i]].insert(all[i + 1]);
      }
    for (bool changed = true; changed;) {  // removes the channels that wait for none
      changed = false;
      for (auto i = next.begin(); i != next.end();) {
        std::erase_if(i->second, [&](const Channel& channel) { return !next.contains(channel); });
        changed |= i->second.empty();
        i = i->second.empty() ? next.erase(i) : std::next(i);
      }
    }
    return !next.empty();
  }

  // The most ways that share a channel, where host i sends to host i + shift.
  [[nodiscard]] u32 most_on_a_channel(u32 shift) const {
    std::map<Channel, u32> users;
    const std::vector<NodeIndex> all = hosts();
    for (u32 i = 0; i < all.size(); ++i)
      for (const Channel& channel : way(all[i], all[(i + shift) % all.size()])) ++users[channel];
    u32 most = 0;
    for (const auto& [channel, count] : users) most = std::max(most, count);
    return most;
  }

 private:
  const Topology& topology_;
  ForwardingTables tables_;
  std::vector<std::vector<NodeIndex>> peers_;  // by node and port
  std::vector<std::vector<const TopologyLink*>> links_;
};

// Switches joined at random, so that all are joined, with a host or two at each.
Topology random_topology(PRNG& prng) {
  Topology topology;
  const u32 switches = static_cast<u32>(2 + prng.below(12));
  for (u32 i = 0; i < switches; ++i) (void)topology.add_switch();
  for (NodeIndex i = 1; i < switches; ++i)
    topology.join(i, static_cast<NodeIndex>(prng.below(i)), {});
  for (u64 more = prng.below(2 * switches); more != 0; --more) {
    const auto a = static_cast<NodeIndex>(prng.below(switches)),
               b = static_cast<NodeIndex>(prng.below(switches));
    if (a != b) topology.join(a, b, {});
  }
  for (NodeIndex i = 0; i < switches; ++i)
    for (u64 hosts = prng.below(3); hosts != 0; --hosts) topology.join(topology.add_host(), i, {});
  return topology;
}

class ForwardingTablesTest : public ::testing::TestWithParam<u64> {};

TEST_P(ForwardingTablesTest, UpDownReachesAllAndHasNoCycle) {
  PRNG prng(GetParam());
  const Topology topology = random_topology(prng);
  const Routed routed(topology, RoutingEngine::kUpDown);
  for (const NodeIndex from : routed.hosts())
    for (const NodeIndex to : routed.hosts())
      EXPECT_EQ(routed.way(from, to).empty(), from == to) << from << " to " << to;
  EXPECT_FALSE(routed.is_cyclic());
}

TEST_P(ForwardingTablesTest, MinHopTakesTheFewestLinks) {
  PRNG prng(GetParam());
  const Topology topology = random_topology(prng);
  const Routed routed(topology, RoutingEngine::kMinHop), up_down(topology, RoutingEngine::kUpDown);
  for (const NodeIndex from : routed.hosts())
    for (const NodeIndex to : routed.hosts()) {
      if (from == to) continue;
      EXPECT_LE(routed.way(from, to).size(), up_down.way(from, to).size());
      EXPECT_LE(routed.way(from, to).size(), routed.way(to, from).size());
      EXPECT_FALSE(routed.way(from, to).empty());
    }
}

TEST_P(ForwardingTablesTest, LinksThatAreDownAreNotUsed) {
  PRNG prng(GetParam());
  const Topology topology = random_topology(prng);
  std::vector<bool> down(topology.links.size());
  const TopologyLink& failed = topology.links[prng.below(topology.links.size())];
  if (!topology.is_switch[failed.a] || !topology.is_switch[failed.b]) return;
  down[static_cast<std::size_t>(&failed - topology.links.data())] = true;
  for (const RoutingEngine engine : {RoutingEngine::kUpDown, RoutingEngine::kMinHop}) {
    const Routed routed(topology, engine, down);
    const Routes reachable(topology, down);
    for (const NodeIndex from : routed.hosts())
      for (const NodeIndex to : routed.hosts()) {
        if (from == to) continue;
        const std::vector<Channel> way = routed.way(from, to);
        EXPECT_EQ(way.empty(), reachable.ports(from, to).empty());
        for (const Channel& channel : way) EXPECT_NE(routed.link_at(channel), &failed);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ForwardingTablesTest, ::testing::Range<u64>(1, 30));

TEST(FatTreeRouting, ShiftsShareNoLink) {
  for (const u32 k : {4u, 6u, 8u}) {
    const Plan plan = fat_tree(k, {});
    const Routed routed(plan.topology, RoutingEngine::kFatTree);
    EXPECT_FALSE(routed.is_cyclic());
    for (u32 shift = 1; shift < plan.hosts.size(); ++shift)
      EXPECT_EQ(routed.most_on_a_channel(shift), 1u) << "k " << k << ", shift " << shift;
  }
}

// Hosts of a leaf go up by all spines, also where they are numbered across the leaves.
TEST(FatTreeRouting, RailsUseAllSpines) {
  const Plan plan = rail_optimized({.nodes = 8, .rails = 4, .groups = 2, .spines = 4}, {});
  const Routed routed(plan.topology, RoutingEngine::kFatTree);
  std::map<Channel, u32> destinations;  // of the ways up from the first leaf
  for (const NodeIndex to : plan.hosts)
    if (const std::vector<Channel> way = routed.way(plan.hosts[0], to); way.size() == 4)
      ++destinations[way[1]];
  ASSERT_EQ(destinations.size(), 4u);
  for (const auto& [channel, count] : destinations) EXPECT_EQ(count, 7u);
}

TEST(FatTreeRouting, RefusesWhatIsNoTree) {
  Topology ring;
  for (u32 i = 0; i < 3; ++i) (void)ring.add_host();
  for (u32 i = 0; i < 3; ++i) (void)ring.add_switch();
  for (u32 i = 0; i < 3; ++i) ring.join(i, 3 + i, {});
  for (u32 i = 0; i < 3; ++i) ring.join(3 + i, 3 + (i + 1) % 3, {});
  EXPECT_EQ(ForwardingTables::obstacle(ring, RoutingEngine::kFatTree), 3u);
  EXPECT_FALSE(ForwardingTables::obstacle(ring, RoutingEngine::kUpDown));
  const Plan plan = leaf_spine({.leaves = 3, .spines = 2, .hosts_per_leaf = 2}, {});
  EXPECT_FALSE(ForwardingTables::obstacle(plan.topology, RoutingEngine::kFatTree));
}

TEST(AdaptiveRouting, HasAllShortestWays) {
  const Plan plan = leaf_spine({.leaves = 3, .spines = 4, .hosts_per_leaf = 2}, {});
  const ForwardingTables tables(plan.topology, RoutingEngine::kAdaptive);
  const NodeIndex leaf = static_cast<NodeIndex>(plan.hosts.size());
  EXPECT_EQ(tables.ports(leaf, plan.hosts.back()).size(), 4u);
  EXPECT_EQ(tables.ports(leaf, plan.hosts.front()).size(), 1u);
}

}  // namespace
}  // namespace verbena::fabric
