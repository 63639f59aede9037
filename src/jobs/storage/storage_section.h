// The section `storage` of a job.
#pragma once

#include "fabric/scenario/section.h"
#include "jobs/job.h"

namespace verbena::jobs {

// Precondition: the job's cluster has been read. Servers that are not named hosts are added to the
// topology, at the switches of hosts that are evenly apart.
void read_storage(fabric::Section section, Job& job);

}  // namespace verbena::jobs
