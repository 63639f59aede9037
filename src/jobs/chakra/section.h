// The section `chakra` of a job: execution traces of its ranks.
#pragma once

#include "fabric/scenario/section.h"
#include "jobs/job.h"

namespace verbena::jobs {

// Precondition: the job's plan has been read. `rails` as in read_cluster().
void read_chakra(fabric::Section section, u32 rails, const fabric::FileReader& read_file, Job& job);

}  // namespace verbena::jobs
