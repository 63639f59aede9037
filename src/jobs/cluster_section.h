// The keys of a job that say what its GPUs are: how many, in which nodes, on which hosts.
#pragma once

#include "fabric/scenario/section.h"
#include "jobs/job.h"

namespace verbena::jobs {

inline constexpr u32 kMostGPUsOfNode = 256;

// Fills in job.cluster. `rails`: GPUs of a node where nothing else is said.
void read_cluster(fabric::Section& section, u32 rails, Job& job);
// Reads the settings for sending messages: `window`, `step_overhead`, `priority`.
void read_run(fabric::Section& section, RunConfig& run);
// Reads `method`. Precondition: the job's plan has been read.
void read_method(fabric::Section& section, Job& job);

}  // namespace verbena::jobs
