#include "fabric/topologies/star.h"

#include <fmt/format.h>

namespace verbena::fabric {

Plan star(u32 hosts, const LinkConfig& link) {
  Plan plan;
  for (u32 i = 0; i < hosts; ++i) plan.add_host(fmt::format("h{}", i));
  const NodeIndex hub = plan.add_switch("s0");
  for (const NodeIndex host : plan.hosts) plan.topology.join(host, hub, link);
  return plan;
}

}  // namespace verbena::fabric
