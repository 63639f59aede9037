#include "fabric/workloads/all_to_all.h"

namespace verbena::fabric {

std::vector<Flow> all_to_all(const Plan& plan, u64 bytes, Time start) {
  std::vector<Flow> flows;
  for (const std::vector<NodeIndex>& island : islands(plan))
    for (std::size_t step = 1; step < island.size(); ++step)
      for (std::size_t i = 0; i < island.size(); ++i)
        flows.push_back({.source = island[i],
                         .destination = island[(i + step) % island.size()],
                         .bytes = bytes,
                         .start = start});
  return flows;
}

}  // namespace verbena::fabric
