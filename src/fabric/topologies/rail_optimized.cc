#include "fabric/topologies/rail_optimized.h"

#include <fmt/format.h>

namespace verbena::fabric {

Plan rail_optimized(const RailOptimized& shape, const PlanLinks& links) {
  Plan plan;
  for (u32 node = 0; node < shape.nodes; ++node)
    for (u32 rail = 0; rail < shape.rails; ++rail)
      plan.add_host(fmt::format("n{}.g{}", node, rail));
  std::vector<NodeIndex> leaves;
  for (u32 group = 0; group < shape.groups; ++group)
    for (u32 rail = 0; rail < shape.rails; ++rail)
      leaves.push_back(plan.add_switch(fmt::format("leaf{}.{}", group, rail)));
  const u32 nodes_of_group = shape.nodes / shape.groups;
  for (u32 node = 0; node < shape.nodes; ++node)
    for (u32 rail = 0; rail < shape.rails; ++rail)
      plan.topology.join(plan.hosts[node * shape.rails + rail],
                         leaves[node / nodes_of_group * shape.rails + rail], links.host);
  for (u32 i = 0; i < shape.spines; ++i) {
    const NodeIndex spine = plan.add_switch(fmt::format("spine{}", i));
    for (const NodeIndex leaf : leaves) plan.topology.join(leaf, spine, links.fabric);
  }
  return plan;
}

}  // namespace verbena::fabric
