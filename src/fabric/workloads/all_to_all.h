// All-to-all: every host sends to every other one, all at once; each begins with the one after it,
// so that no receiver is everybody's first. Among hosts that can reach each other.
#pragma once

#include <vector>

#include "fabric/flow.h"
#include "fabric/topologies/plan.h"

namespace verbena::fabric {

[[nodiscard]] std::vector<Flow> all_to_all(const Plan& plan, u64 bytes, Time start);

}  // namespace verbena::fabric
