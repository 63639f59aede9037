#include "fabric/topologies/leaf_spine.h"

#include <fmt/format.h>

namespace verbena::fabric {

Plan leaf_spine(const LeafSpine& shape, const PlanLinks& links) {
  Plan plan;
  for (u32 i = 0; i < shape.leaves * shape.hosts_per_leaf; ++i)
    plan.add_host(fmt::format("h{}", i));
  std::vector<NodeIndex> leaves, spines;
  for (u32 i = 0; i < shape.leaves; ++i)
    leaves.push_back(plan.add_switch(fmt::format("leaf{}", i)));
  for (u32 i = 0; i < shape.spines; ++i)
    spines.push_back(plan.add_switch(fmt::format("spine{}", i)));
  for (u32 i = 0; i < plan.hosts.size(); ++i)
    plan.topology.join(plan.hosts[i], leaves[i / shape.hosts_per_leaf], links.host);
  for (const NodeIndex leaf : leaves)
    for (const NodeIndex spine : spines) plan.topology.join(leaf, spine, links.fabric);
  return plan;
}

}  // namespace verbena::fabric
