#include "fabric/results/port_map.h"

namespace verbena::fabric {

PortMap::PortMap(const Topology& topology) : first_port_(topology.nodes + 1) {
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b}) ++first_port_[node + 1];
  for (NodeIndex node = 0; node < topology.nodes; ++node)
    first_port_[node + 1] += first_port_[node];
  by_port_.resize(first_port_.back());
  std::vector<u32> used(topology.nodes);
  for (u32 i = 0; i < topology.links.size(); ++i) {
    const TopologyLink& link = topology.links[i];
    ends_.push_back({.node = link.a, .peer = link.b, .port = used[link.a]++, .link = i});
    ends_.push_back(
        {.node = link.b, .peer = link.a, .port = used[link.b]++, .link = i, .is_b = true});
  }
  for (u32 i = 0; i < ends_.size(); ++i) by_port_[first_port_[ends_[i].node] + ends_[i].port] = i;
}

}  // namespace verbena::fabric
