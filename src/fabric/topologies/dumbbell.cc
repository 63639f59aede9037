#include "fabric/topologies/dumbbell.h"

#include <fmt/format.h>

namespace verbena::fabric {

Plan dumbbell(u32 left, u32 right, const PlanLinks& links) {
  Plan plan;
  for (u32 i = 0; i < left + right; ++i) plan.add_host(fmt::format("h{}", i));
  const NodeIndex s0 = plan.add_switch("s0"), s1 = plan.add_switch("s1");
  for (u32 i = 0; i < left + right; ++i)
    plan.topology.join(plan.hosts[i], i < left ? s0 : s1, links.host);
  plan.topology.join(s0, s1, links.fabric);
  return plan;
}

}  // namespace verbena::fabric
