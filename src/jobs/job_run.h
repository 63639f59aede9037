// Runs one collective operation of a job, by packets, by flows or by both.
#pragma once

#include "jobs/job_report.h"
#include "jobs/stop.h"

namespace verbena::jobs {

[[nodiscard]] CollectiveResult run_collective(const Job& job, const collectives::Shape& shape,
                                              const Stop& stop);

}  // namespace verbena::jobs
