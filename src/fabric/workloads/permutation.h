// Permutation: every host sends to one other and hears from one other, by chance. Among hosts that
// can reach each other.
#pragma once

#include <vector>

#include "base/prng.h"
#include "fabric/flow.h"
#include "fabric/topologies/plan.h"

namespace verbena::fabric {

[[nodiscard]] std::vector<Flow> permutation(const Plan& plan, u64 bytes, Time start, PRNG& prng);

}  // namespace verbena::fabric
