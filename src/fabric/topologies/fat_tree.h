// Fat tree of switches with k ports each: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2
// core switches, k^3/4 hosts. Al-Fares et al., "A Scalable, Commodity Data Center Network
// Architecture", SIGCOMM 2008, 3.
// Names: h0 .., edgeP.E and aggP.A of pod P, core0 ...
#pragma once

#include "fabric/topologies/plan.h"

namespace verbena::fabric {

// `k` is even.
[[nodiscard]] Plan fat_tree(u32 k, const PlanLinks& links);
[[nodiscard]] constexpr u64 fat_tree_nodes(u64 k) { return k * k * k / 4 + k * k * 5 / 4; }

}  // namespace verbena::fabric
