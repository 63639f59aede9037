#include "fabric/windows.h"

#include <algorithm>
#include <utility>

namespace verbena::fabric {
namespace {

constexpr u8 kUnknown = 2;

std::vector<std::vector<NodeIndex>> neighbours_of(const Topology& topology) {
  std::vector<std::vector<NodeIndex>> neighbours(topology.nodes);
  for (const TopologyLink& link : topology.links) {
    neighbours[link.a].push_back(link.b);
    neighbours[link.b].push_back(link.a);
  }
  return neighbours;
}

// Each node's side is due to one that it is linked to.
void spread(const std::vector<std::vector<NodeIndex>>& neighbours, std::vector<u8>& sides,
            std::vector<NodeIndex> known) {
  while (!known.empty()) {
    const NodeIndex node = known.back();
    known.pop_back();
    for (const NodeIndex next : neighbours[node]) {
      if (sides[next] != kUnknown) continue;
      sides[next] = sides[node] ^ 1u;
      known.push_back(next);
    }
  }
}

}  // namespace

std::vector<u8> sides_of(const Topology& topology) {
  const std::vector<std::vector<NodeIndex>> neighbours = neighbours_of(topology);
  std::vector<u8> sides(topology.nodes, kUnknown);
  std::vector<NodeIndex> hosts;
  for (NodeIndex node = 0; node < topology.nodes; ++node)
    if (!topology.is_switch[node]) hosts.push_back(node);
  for (const NodeIndex host : hosts) sides[host] = 0;
  spread(neighbours, sides, std::move(hosts));
  // Switches without a way to any host.
  for (NodeIndex node = 0; node < topology.nodes; ++node) {
    if (sides[node] != kUnknown) continue;
    sides[node] = 0;
    spread(neighbours, sides, {node});
  }
  const bool divides = std::ranges::all_of(topology.links, [&sides](const TopologyLink& link) {
    return sides[link.a] != sides[link.b];
  });
  return divides ? sides : std::vector<u8>{};
}

}  // namespace verbena::fabric
