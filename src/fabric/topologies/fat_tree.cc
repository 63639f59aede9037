#include "fabric/topologies/fat_tree.h"

#include <fmt/format.h>

namespace verbena::fabric {

Plan fat_tree(u32 k, const PlanLinks& links) {
  const u32 half = k / 2;
  Plan plan;
  for (u32 i = 0; i < k * half * half; ++i) plan.add_host(fmt::format("h{}", i));
  std::vector<NodeIndex> edges, aggregations;
  for (u32 pod = 0; pod < k; ++pod) {
    for (u32 i = 0; i < half; ++i)
      edges.push_back(plan.add_switch(fmt::format("edge{}.{}", pod, i)));
    for (u32 i = 0; i < half; ++i)
      aggregations.push_back(plan.add_switch(fmt::format("agg{}.{}", pod, i)));
  }
  std::vector<NodeIndex> cores;
  for (u32 i = 0; i < half * half; ++i) cores.push_back(plan.add_switch(fmt::format("core{}", i)));

  for (u32 i = 0; i < plan.hosts.size(); ++i)
    plan.topology.join(plan.hosts[i], edges[i / half], links.host);
  for (u32 pod = 0; pod < k; ++pod)
    for (u32 edge = 0; edge < half; ++edge)
      for (u32 up = 0; up < half; ++up)
        plan.topology.join(edges[pod * half + edge], aggregations[pod * half + up], links.fabric);
  for (u32 i = 0; i < aggregations.size(); ++i)
    for (u32 up = 0; up < half; ++up)
      plan.topology.join(aggregations[i], cores[i % half * half + up], links.fabric);
  return plan;
}

}  // namespace verbena::fabric
