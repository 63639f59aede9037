// Leaf and spine: hosts on leaf switches, and each leaf linked to every spine. Names: h0 .., leaf0
// .., spine0 ...
#pragma once

#include "fabric/topologies/plan.h"

namespace verbena::fabric {

struct LeafSpine {
  u32 leaves = 4, spines = 4, hosts_per_leaf = 8;
};
[[nodiscard]] Plan leaf_spine(const LeafSpine& shape, const PlanLinks& links);

}  // namespace verbena::fabric
