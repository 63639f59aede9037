// Partition: which domain simulates which node. Hosts are divided evenly, in their order; a switch
// goes where most of what hangs on it is, so that few links join domains, as long as that has not
// got its share of all that links can carry.
#pragma once

#include <vector>

#include "fabric/topology.h"

namespace verbena::fabric {

// The domain, below `domains`, of each node.
[[nodiscard]] std::vector<u32> partition(const Topology& topology, u32 domains);

}  // namespace verbena::fabric
