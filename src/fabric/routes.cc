#include "fabric/routes.h"

#include <algorithm>
#include <map>

namespace verbena::fabric {
namespace {

constexpr u32 kFar = ~u32{0};

}  // namespace

Routes::Routes(const Topology& topology, const std::vector<bool>& down, ParallelLinks parallel) {
  find_neighbours(topology, down, parallel);
  group_hosts(topology);
  set_begin_ = {0, 0};  // set 0 is empty
  groups_ = static_cast<u32>(roots_.size());
  sets_at_.assign(u64{topology.nodes} * groups_, 0);
  for (u32 group = 0; group < groups_; ++group) find_ways(topology, roots_[group], group);
}

// The order is that in which equal ways are found, and so that of the hash's choices.
void Routes::find_neighbours(const Topology& topology, const std::vector<bool>& down,
                             ParallelLinks parallel) {
  neighbours_.resize(topology.nodes);
  std::vector<u16> ports(topology.nodes);
  const auto add = [&](NodeIndex from, NodeIndex to, u16 port, u16 back) {
    if (parallel == ParallelLinks::kLast)
      std::erase_if(neighbours_[from], [to](const Neighbour& n) { return n.node == to; });
    neighbours_[from].push_back({to, port, back});
  };
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const TopologyLink& link = topology.links[i];
    const u16 a = ports[link.a]++, b = ports[link.b]++;
    if (!down.empty() && down[i]) continue;
    add(link.a, link.b, a, b);
    add(link.b, link.a, b, a);
  }
  for (std::vector<Neighbour>& of_node : neighbours_)
    std::ranges::stable_sort(of_node, std::ranges::greater{}, &Neighbour::node);
}

// Where the host's links end.
void Routes::attach(const Topology& topology, NodeIndex host) {
  const std::vector<Neighbour>& links = neighbours_[host];
  if (links.size() == 1) {
    places_[host].attached_to = links[0].node;
    places_[host].port = links[0].back;
  }
  if (links.size() < 2) return;
  if (more_links_.empty()) more_links_.resize(topology.nodes);
  std::vector<Attachment>& attachments = more_links_[host];
  for (const Neighbour& link : links) {
    if (attachments.empty() || attachments.back().node != link.node)
      attachments.push_back({link.node, {}});
    attachments.back().ports.push_back(link.back);
  }
}

void Routes::group_hosts(const Topology& topology) {
  places_.assign(topology.nodes, {.attached_to = topology.nodes});
  std::map<std::vector<NodeIndex>, u32> groups;
  for (NodeIndex host = 0; host < topology.nodes; ++host) {
    if (topology.is_switch[host]) continue;
    attach(topology, host);
    std::vector<NodeIndex> roots;
    for (const Neighbour& neighbour : neighbours_[host])
      if (topology.is_switch[neighbour.node] && (roots.empty() || roots.back() != neighbour.node))
        roots.push_back(neighbour.node);
    if (roots.empty()) continue;
    const auto [group, is_new] = groups.try_emplace(roots, static_cast<u32>(roots_.size()));
    places_[host].group = group->second;
    if (is_new) roots_.push_back(std::move(roots));
  }
}

// Breadth first from the switches that the group hangs on; only switches pass frames on.
void Routes::find_ways(const Topology& topology, const std::vector<NodeIndex>& roots, u32 group) {
  std::vector<u32> distance(topology.nodes, kFar);
  std::vector<std::vector<u16>> ways(topology.nodes);
  std::vector<NodeIndex> order = roots;
  for (const NodeIndex root : roots) distance[root] = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const NodeIndex here = order[i];
    for (const Neighbour& next : neighbours_[here]) {
      if (distance[next.node] == kFar) {
        distance[next.node] = distance[here] + 1;
        if (topology.is_switch[next.node]) order.push_back(next.node);
      }
      if (distance[next.node] == distance[here] + 1) ways[next.node].push_back(next.back);
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
