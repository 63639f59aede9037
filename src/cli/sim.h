// `verbena sim`: runs a scenario on the simulated fabric.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"
#include "cli/sim_outcome.h"

namespace verbena::cli {

// The results are in the request's output folder.
[[nodiscard]] Expected<SimOutcome> sim(const SimRequest& request);

}  // namespace verbena::cli
