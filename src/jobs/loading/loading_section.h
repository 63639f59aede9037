// The section `loading` of a job: docs/transfer.md has its keys.
#pragma once

#include "fabric/scenario/section.h"
#include "jobs/job.h"

namespace verbena::jobs {

void read_loading(fabric::Section section, u32 rails, Job& job);

}  // namespace verbena::jobs
