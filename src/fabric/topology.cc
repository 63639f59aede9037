#include "fabric/topology.h"

#include <fmt/format.h>

namespace verbena::fabric {

std::string check(const Topology& topology) {
  std::vector<u32> links_of(topology.nodes);
  for (const TopologyLink& link : topology.links) {
    if (link.a >= topology.nodes || link.b >= topology.nodes)
      return fmt::format("a link names node {}, and there are {}", std::max(link.a, link.b),
                         topology.nodes);
    if (link.a == link.b) return fmt::format("node {} is linked to itself", link.a);
    if (link.config.rate.bps() == 0)
      return fmt::format("the link of nodes {} and {} has no rate", link.a, link.b);
    for (const NodeIndex node : {link.a, link.b})
      if (++links_of[node] > Topology::kMostLinksOfHost && !topology.is_switch[node])
        return fmt::format("host {} has more than {} links", node, Topology::kMostLinksOfHost);
  }
  return {};
}

}  // namespace verbena::fabric
