// The use of links over time, of a network's record.
#pragma once

#include "fabric/results/link_use.h"
#include "fabric/results/network_record.h"

namespace verbena::fabric {

[[nodiscard]] LinkUse use_of_links(const NetworkRecord& record, const Topology& topology, Time end);

}  // namespace verbena::fabric
