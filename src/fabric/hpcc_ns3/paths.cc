#include "fabric/hpcc_ns3/paths.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace verbena::fabric::hpcc_ns3 {
Paths::Paths(const Topology& topology, const Routes& routes, u32 payload)
    : topology_(topology), routes_(routes), payload_(payload), first_(topology.nodes + 1) {
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b}) ++first_[node + 1];
  for (NodeIndex node = 0; node < topology.nodes; ++node) first_[node + 1] += first_[node];
  ends_.resize(first_.back());
  std::vector<u32> used(topology.nodes);
  for (u32 i = 0; i < topology.links.size(); ++i) {
    const auto [a, b, config] = topology.links[i];
    ends_[first_[a] + used[a]++] = {b, i};
    ends_[first_[b] + used[b]++] = {a, i};
  }
}

Path Paths::between(NodeIndex source, NodeIndex destination) const {
  Path path{.slowest_bps = ~u64{0}};
  for (NodeIndex node = source; node != destination;) {
    const std::span<const u16> ports = routes_.ports(node, destination);
    if (ports.empty()) return {};
    const auto [peer, link] = end(node, ports[0]);
    const LinkConfig& config = topology_.links[link].config;
    path.delay_ns += static_cast<u64>(config.delay.ns());
    path.transmission_ns += payload_ * kNanosecondBits / config.rate.bps();
    path.slowest_bps = std::min(path.slowest_bps, config.rate.bps());
    node = peer;
  }
  return path;
}

// Hosts at one switch with equal links are alike; two of a kind, for the way between them.
std::vector<NodeIndex> Paths::representatives() const {
  std::map<std::tuple<NodeIndex, u64, i64>, u32> seen;
  std::vector<NodeIndex> hosts;
  for (NodeIndex node = 0; node < topology_.nodes; ++node) {
    if (topology_.is_switch[node] || first_[node] == first_[node + 1]) continue;
    const auto [peer, link] = end(node, 0);
    const LinkConfig& config = topology_.links[link].config;
    if (seen[{peer, config.rate.bps(), config.delay.ps()}]++ < 2) hosts.push_back(node);
  }
  return hosts;
}

Paths::Extent Paths::extent() const {
  Extent extent;
  const std::vector<NodeIndex> hosts = representatives();
  for (const NodeIndex source : hosts)
    for (const NodeIndex destination : hosts) {
      if (source == destination) continue;
      const Path path = between(source, destination);
      if (path.slowest_bps == 0) continue;
      extent.longest_ns = std::max(extent.longest_ns, path.round_trip_ns());
      extent.shortest_ns = std::min(extent.shortest_ns, path.round_trip_ns());
      extent.most_bytes = std::max(extent.most_bytes, path.bytes_in_flight());
      extent.least_bytes = std::min(extent.least_bytes, path.bytes_in_flight());
    }
  return extent;
}

}  // namespace verbena::fabric::hpcc_ns3
