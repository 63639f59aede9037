#include "fabric/routes.h"

#include <algorithm>

namespace verbena::fabric {
namespace {

constexpr u32 kFar = ~u32{0};

}  // namespace

Routes::Routes(const Topology& topology, const std::vector<bool>& down) {
  find_neighbours(topology, down);
  group_hosts(topology);
  set_begin_ = {0, 0};  // set 0 is empty
  sets_at_.assign(u64{topology.nodes} * groups_, 0);
  for (u32 group = 0; group < groups_; ++group) find_ways(topology, roots_[group], group);
}

// Of several links to one neighbour the last counts. The order is that in which equal ways are
// found, and so that of the hash's choices.
void Routes::find_neighbours(const Topology& topology, const std::vector<bool>& down) {
  neighbours_.resize(topology.nodes);
  std::vector<u16> ports(topology.nodes);
  const auto add = [&](NodeIndex from, NodeIndex to, bool is_down) {
    const u16 port = ports[from]++;
    if (is_down) return;
    std::erase_if(neighbours_[from], [to](const Neighbour& n) { return n.node == to; });
    neighbours_[from].push_back({to, port});
  };
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const TopologyLink& link = topology.links[i];
    const bool is_down = !down.empty() && down[i];
    add(link.a, link.b, is_down);
    add(link.b, link.a, is_down);
  }
  for (std::vector<Neighbour>& of_node : neighbours_)
    std::ranges::sort(of_node, std::ranges::greater{}, &Neighbour::node);
}

void Routes::group_hosts(const Topology& topology) {
  attached_to_.assign(topology.nodes, topology.nodes);
  attached_port_.assign(topology.nodes, 0);
  group_of_.assign(topology.nodes, kNoGroup);
  std::vector<u32> group_at(topology.nodes, kNoGroup);
  for (NodeIndex node = 0; node < topology.nodes; ++node) {
    for (const Neighbour& neighbour : neighbours_[node]) {
      if (topology.is_switch[neighbour.node]) continue;
      attached_to_[neighbour.node] = node;
      attached_port_[neighbour.node] = neighbour.port;
      if (!topology.is_switch[node]) continue;
      if (group_at[node] == kNoGroup) {
        group_at[node] = groups_++;
        roots_.push_back(node);
      }
      group_of_[neighbour.node] = group_at[node];
    }
  }
}

// Breadth first from the switch that the group hangs on; only switches pass frames on.
void Routes::find_ways(const Topology& topology, NodeIndex root, u32 group) {
  std::vector<u32> distance(topology.nodes, kFar);
  std::vector<std::vector<u16>> ways(topology.nodes);
  std::vector<NodeIndex> order{root};
  distance[root] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeIndex here = order[i];
    for (const Neighbour& next : neighbours_[here]) {
      if (distance[next.node] == kFar) {
        distance[next.node] = distance[here] + 1;
        if (topology.is_switch[next.node]) order.push_back(next.node);
      }
      if (distance[next.node] != distance[here] + 1) continue;
      const auto back = std::ranges::find(neighbours_[next.node], here, &Neighbour::node);
      ways[next.node].push_back(back->port);
    }
  }
  for (NodeIndex node = 0; node < topology.nodes; ++node)
    if (!ways[node].empty()) sets_at_[node * u64{groups_} + group] = set_of(ways[node]);
}

u32 Routes::set_of(const std::vector<u16>& ports) {
  for (u32 set = 1; set + 1 < set_begin_.size(); ++set) {
    const std::span<const u16> known(set_ports_.data() + set_begin_[set],
                                     set_begin_[set + 1] - set_begin_[set]);
    if (std::ranges::equal(known, ports)) return set;
  }
  set_ports_.insert(set_ports_.end(), ports.begin(), ports.end());
  set_begin_.push_back(static_cast<u32>(set_ports_.size()));
  return static_cast<u32>(set_begin_.size() - 2);
}

}  // namespace verbena::fabric
