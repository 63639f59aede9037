#include "fabric/infiniband/forwarding_tables.h"

#include <algorithm>
#include <numeric>

#include "fabric/topologies/plan.h"

namespace verbena::fabric {
namespace {

constexpr u32 kFar = ~u32{0} - 1;

struct Way {
  NodeIndex to = 0;
  u16 port = 0;
};

// Roots: the switches at the top: all switches of the highest tier, as in a tree, or one alone (in
// a part that has none, its first switch). Where upward paths end at several roots, some may have
// none in common.
enum class Roots : u8 { kAllOfTheHighest, kOne };

// The switches of a topology, and how their links lie to each other.
class Subnet {
 public:
  Subnet(const Topology& topology, const std::vector<bool>& down, Roots roots)
      : topology_(topology) {
    ways_.resize(topology.nodes);
    std::vector<u16> ports(topology.nodes);
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
      const TopologyLink& link = topology.links[i];
      const u16 at_a = ports[link.a]++, at_b = ports[link.b]++;
      if (!down.empty() && down[i]) continue;
      ways_[link.a].push_back({link.b, at_a});
      ways_[link.b].push_back({link.a, at_b});
    }
    tier_ = tiers(topology);
    find_ranks(roots);
  }

  [[nodiscard]] const std::vector<Way>& ways(NodeIndex node) const { return ways_[node]; }
  [[nodiscard]] bool is_switch(NodeIndex node) const { return topology_.is_switch[node]; }
  [[nodiscard]] u32 nodes() const { return topology_.nodes; }
  [[nodiscard]] u32 tier(NodeIndex node) const { return tier_[node]; }
  // Returns whether the step from one switch to another goes up.
  [[nodiscard]] bool goes_up(NodeIndex from, NodeIndex to) const {
    return rank_[to] != rank_[from] ? rank_[to] < rank_[from] : to < from;
  }
  // Returns the switches in an order in which no step up leads from a switch to a later one.
  [[nodiscard]] const std::vector<NodeIndex>& from_the_roots() const { return order_; }
  // Returns the switches that hosts are attached to.
  [[nodiscard]] std::vector<NodeIndex> leaves() const {
    std::vector<NodeIndex> leaves;
    for (NodeIndex node = 0; node < nodes(); ++node)
      if (is_switch(node) &&
          std::ranges::any_of(ways_[node], [this](const Way& way) { return !is_switch(way.to); }))
        leaves.push_back(node);
    return leaves;
  }

 private:
  // Sets the rank of each switch: the number of links to the nearest root.
  void find_ranks(Roots which) {
    rank_.assign(nodes(), kFar);
    u32 highest = 0;
    for (NodeIndex node = 0; node < nodes(); ++node)
      if (is_switch(node)) highest = std::max(highest, tier_[node]);
    std::vector<NodeIndex> roots;
    for (NodeIndex node = 0; node < nodes(); ++node)
      if (is_switch(node) && tier_[node] == highest) roots.push_back(node);
    if (which == Roots::kOne) roots.resize(std::min<std::size_t>(roots.size(), 1));
    spread_ranks(roots);
    for (NodeIndex node = 0; node < nodes(); ++node)
      if (is_switch(node) && rank_[node] == kFar) spread_ranks({node});
    for (NodeIndex node = 0; node < nodes(); ++node)
      if (is_switch(node)) order_.push_back(node);
    std::ranges::stable_sort(order_, {}, [this](NodeIndex node) { return rank_[node]; });
  }
  void spread_ranks(std::vector<NodeIndex> reached) {
    for (const NodeIndex root : reached) rank_[root] = 0;
    for (std::size_t i = 0; i < reached.size(); ++i)
      for (const Way& way : ways_[reached[i]])
        if (is_switch(way.to) && rank_[way.to] == kFar) {
          rank_[way.to] = rank_[reached[i]] + 1;
          reached.push_back(way.to);
        }
  }

  const Topology& topology_;
  std::vector<std::vector<Way>> ways_;  // by node, in the order of its ports
  std::vector<u32> tier_, rank_;
  std::vector<NodeIndex> order_;
};

// Distances: how far each switch is from a leaf switch, by the paths that an engine allows.
struct Distances {
  std::vector<u32> down;  // by ways that go down only
  std::vector<u32> all;
  bool is_directed = false;  // each step of a way is up or down, as is said
};

// `may_pass(from, to)`: from a switch that is reached to one before it on a way.
template <typename MayPass>
std::vector<u32> spread(const Subnet& subnet, NodeIndex leaf, const MayPass& may_pass) {
  std::vector<u32> distance(subnet.nodes(), kFar);
  std::vector<NodeIndex> reached{leaf};
  distance[leaf] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const Way& way : subnet.ways(reached[i]))
      if (subnet.is_switch(way.to) && distance[way.to] == kFar && may_pass(reached[i], way.to)) {
        distance[way.to] = distance[reached[i]] + 1;
        reached.push_back(way.to);
      }
  return distance;
}

Distances shortest(const Subnet& subnet, NodeIndex leaf) {
  return {.down = std::vector<u32>(subnet.nodes(), kFar),
          .all = spread(subnet, leaf, [](NodeIndex, NodeIndex) { return true; })};
}

// Paths go down where that leads to the leaf, else up to a switch that has a path.
Distances up_and_down(const Subnet& subnet, NodeIndex leaf) {
  Distances found;
  found.down =
      spread(subnet, leaf, [&](NodeIndex from, NodeIndex to) { return subnet.goes_up(from, to); });
  found.all = found.down;
  found.is_directed = true;
  for (const NodeIndex node : subnet.from_the_roots()) {
    if (found.down[node] != kFar) continue;
    for (const Way& way : subnet.ways(node))
      if (subnet.is_switch(way.to) && subnet.goes_up(node, way.to) && found.all[way.to] < kFar)
        found.all[node] = std::min(found.all[node], found.all[way.to] + 1);
  }
  return found;
}

// Returns whether every switch that has any path to a leaf has one that goes up and then down.
bool all_reach_all(const Subnet& subnet) {
  for (const NodeIndex leaf : subnet.leaves()) {
    const std::vector<u32> any = shortest(subnet, leaf).all, ours = up_and_down(subnet, leaf).all;
    for (NodeIndex node = 0; node < subnet.nodes(); ++node)
      if (any[node] != kFar && ours[node] == kFar) return false;
  }
  return true;
}

Subnet subnet_for(const Topology& topology, const std::vector<bool>& down) {
  Subnet subnet(topology, down, Roots::kAllOfTheHighest);
  return all_reach_all(subnet) ? subnet : Subnet(topology, down, Roots::kOne);
}

// Returns the ports of `node` that are a step nearer to the leaf.
std::vector<u16> candidates(const Subnet& subnet, const Distances& to, NodeIndex node) {
  const bool goes_down = to.down[node] != kFar;
  const std::vector<u32>& distance = goes_down ? to.down : to.all;
  std::vector<u16> ports;
  for (const Way& way : subnet.ways(node))
    if (subnet.is_switch(way.to) && distance[way.to] != kFar &&
        distance[way.to] + 1 == distance[node] &&
        (!to.is_directed || subnet.goes_up(node, way.to) != goes_down))
      ports.push_back(way.port);
  return ports;
}

// --- which of several

class FewestDestinations {
 public:
  explicit FewestDestinations(const Subnet& subnet) : given_(subnet.nodes()) {}
  u16 choose(NodeIndex node, std::span<const u16> ports, u32 /*destination*/) {
    std::vector<u32>& given = given_[node];
    given.resize(std::max<std::size_t>(given.size(), *std::ranges::max_element(ports) + 1u));
    const u16 port =
        *std::ranges::min_element(ports, {}, [&given](u16 candidate) { return given[candidate]; });
    ++given[port];
    return port;
  }

 private:
  std::vector<std::vector<u32>> given_;  // destinations, by node and port
};

class ByNumber {  // d-mod-k
 public:
  explicit ByNumber(const Subnet& subnet) : subnet_(subnet), below_(1, 1) {
    u32 highest = 0;
    std::vector<u32> ways_up(subnet.nodes() + 2);
    for (const NodeIndex node : subnet.from_the_roots()) {
      highest = std::max(highest, subnet.tier(node));
      const auto up = std::ranges::count_if(subnet.ways(node), [&](const Way& way) {
        return subnet.is_switch(way.to) && subnet.tier(way.to) > subnet.tier(node);
      });
      u32& most = ways_up[subnet.tier(node)];
      most = std::max(most, static_cast<u32>(up));
    }
    for (u32 tier = 0; tier < highest; ++tier)
      below_.push_back(below_.back() * std::max(1u, ways_up[tier]));
  }
  u16 choose(NodeIndex node, std::span<const u16> ports, u32 destination) const {
    return ports[destination / below_[subnet_.tier(node)] % ports.size()];
  }

 private:
  const Subnet& subnet_;
  std::vector<u32> below_;  // by tier: the ways up of all tiers below, multiplied
};

}  // namespace

std::optional<u32> ForwardingTables::obstacle(const Topology& topology, RoutingEngine engine) {
  if (engine != RoutingEngine::kFatTree) return std::nullopt;
  const std::vector<u32> tier = tiers(topology);
  for (u32 i = 0; i < topology.links.size(); ++i) {
    const TopologyLink& link = topology.links[i];
    if (tier[link.a] + 1 != tier[link.b] && tier[link.b] + 1 != tier[link.a]) return i;
  }
  return std::nullopt;
}

ForwardingTables::ForwardingTables(const Topology& topology, RoutingEngine engine,
                                   const std::vector<bool>& down) {
  if (engine == RoutingEngine::kAdaptive) {
    equal_ways_.emplace(topology, down);
    return;
  }
  const Subnet subnet = subnet_for(topology, down);
  column_of_.resize(topology.nodes);
  row_of_.resize(topology.nodes);
  u32 rows = 1;
  for (NodeIndex node = 0; node < topology.nodes; ++node)
    if (topology.is_switch[node])
      row_of_[node] = rows++;
    else
      column_of_[node] = columns_++;
  table_.assign(u64{rows} * columns_, kNoPort);
  std::fill_n(table_.begin(), columns_, u16{0});
  FewestDestinations fewest(subnet);
  const ByNumber by_number(subnet);
  u32 number = 0;
  for (const NodeIndex leaf : subnet.leaves()) {
    const Distances to =
        engine == RoutingEngine::kMinHop ? shortest(subnet, leaf) : up_and_down(subnet, leaf);
    std::vector<std::vector<u16>> ports(topology.nodes);
    for (const NodeIndex node : subnet.from_the_roots())
      if (node != leaf) ports[node] = candidates(subnet, to, node);
    for (const Way& host : subnet.ways(leaf)) {
      if (subnet.is_switch(host.to)) continue;
      const auto entry = [&](NodeIndex node) -> u16& {
        return table_[u64{row_of_[node]} * columns_ + column_of_[host.to]];
      };
      entry(leaf) = host.port;
      for (const NodeIndex node : subnet.from_the_roots())
        if (!ports[node].empty())
          entry(node) = engine == RoutingEngine::kFatTree
                            ? by_number.choose(node, ports[node], number)
                            : fewest.choose(node, ports[node], number);
      ++number;
    }
  }
}

}  // namespace verbena::fabric
