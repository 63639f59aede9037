// Rail-optimized: the NICs of equal number of all nodes of a group hang on one leaf switch, their
// rail; spines join the leaves. Without spines each rail is an island: traffic between rails has to
// take NVLink inside a node, which is none of this network's.
// Each NIC is a host, nN.gR: NIC R of node N. Names: leafG.R of group G and rail R, spine0 ...
#pragma once

#include "fabric/topologies/plan.h"

namespace verbena::fabric {

struct RailOptimized {
  u32 nodes = 4, rails = 8, groups = 1;  // nodes: of all groups, a multiple of their number
  u32 spines = 4;                        // 0: none
};
[[nodiscard]] Plan rail_optimized(const RailOptimized& shape, const PlanLinks& links);

}  // namespace verbena::fabric
