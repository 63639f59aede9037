#include "fabric/workloads/incast.h"

namespace verbena::fabric {

std::vector<Flow> incast(const Incast& incast) {
  std::vector<Flow> flows;
  Time start = incast.start;
  for (const NodeIndex from : incast.from) {
    flows.push_back(
        {.source = from, .destination = incast.to, .bytes = incast.bytes, .start = start});
    start = start + incast.stagger;
  }
  return flows;
}

}  // namespace verbena::fabric
