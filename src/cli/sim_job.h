// Jobs: scenarios whose hosts are the NICs of GPUs and do collective operations.
#pragma once

#include <string>

#include "cli/sim.h"

namespace verbena::cli {

// The request's only scenario is a job.
[[nodiscard]] Expected<SimOutcome> sim_job(const SimRequest& request,
                                           const std::vector<fabric::Setting>& settings);

}  // namespace verbena::cli
