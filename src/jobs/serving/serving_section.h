// The section `serving` of a job: docs/transfer.md has its keys.
#pragma once

#include "fabric/scenario/section.h"
#include "jobs/job.h"

namespace verbena::jobs {

void read_serving(fabric::Section section, u32 rails, const fabric::FileReader& read_file,
                  Job& job);

}  // namespace verbena::jobs
