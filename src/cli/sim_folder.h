// `verbena sim FOLDER`: a scenario of HPCC's ns-3 model, by that model's conventions.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"
#include "cli/sim_outcome.h"

namespace verbena::cli {

// The results are in the request's output folder; after SIGINT or SIGTERM those so far, with a line
// INTERRUPTED.
[[nodiscard]] Expected<SimOutcome> sim_folder(const SimRequest& request);

}  // namespace verbena::cli
