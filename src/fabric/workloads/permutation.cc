#include "fabric/workloads/permutation.h"

#include <algorithm>
#include <utility>

namespace verbena::fabric {

// One cycle through all hosts of an island (Sattolo, 1986): nobody sends to itself.
std::vector<Flow> permutation(const Plan& plan, u64 bytes, Time start, PRNG& prng) {
  std::vector<Flow> flows;
  for (const std::vector<NodeIndex>& island : islands(plan)) {
    std::vector<NodeIndex> peers = island;
    for (std::size_t i = peers.size(); i-- > 1;) std::swap(peers[i], peers[prng.below(i)]);
    for (std::size_t i = 0; i < island.size() && island.size() > 1; ++i)
      flows.push_back(
          {.source = island[i], .destination = peers[i], .bytes = bytes, .start = start});
  }
  std::ranges::sort(flows, {}, &Flow::source);
  return flows;
}

}  // namespace verbena::fabric
