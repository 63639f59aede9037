// `verbena sim --compare` and `--sweep`: several scenarios, or one with several values of its keys,
// run on all cores at once; their results side by side. What comes out does not depend on how many
// cores there are.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"
#include "cli/sim_outcome.h"

namespace verbena::cli {

[[nodiscard]] Expected<SimOutcome> sim_compare(const SimRequest& request);

}  // namespace verbena::cli
