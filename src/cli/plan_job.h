// `verbena plan JOB`: the job with each technology, on each topology; a table, a recommendation,
// and settings that are proven. What comes out does not depend on how many cores there are.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"
#include "cli/sim.h"

namespace verbena::cli {

[[nodiscard]] Expected<SimOutcome> plan_job(const PlanJobRequest& request);

}  // namespace verbena::cli
