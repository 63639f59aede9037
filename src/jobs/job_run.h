// Runs one collective operation of a job, by packets, by flows or by both.
#pragma once

#include <functional>

#include "jobs/job_report.h"

namespace verbena::jobs {

// Asked between stretches of simulated time: true ends the run, with a mistake that says so.
using Stop = std::function<bool()>;

[[nodiscard]] CollectiveResult run_collective(const Job& job, const collectives::Shape& shape,
                                              const Stop& stop);

}  // namespace verbena::jobs
