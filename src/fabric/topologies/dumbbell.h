// Dumbbell: hosts on a left switch (s0) and a right one (s1), and one link between the two: the
// bottleneck. Hosts h0 .. on the left, then those on the right.
#pragma once

#include "fabric/topologies/plan.h"

namespace verbena::fabric {

[[nodiscard]] Plan dumbbell(u32 left, u32 right, const PlanLinks& links);

}  // namespace verbena::fabric
