// The sections `training` and `inference` of a job.
#pragma once

#include "fabric/scenario/section.h"
#include "jobs/job.h"

namespace verbena::jobs {

// Precondition of both: the job's plan has been read. `rails` as in read_cluster().
void read_training(fabric::Section section, u32 rails, Job& job);
void read_inference(fabric::Section section, u32 rails, Job& job);
// Parts of sections: a name, or {name, and what is otherwise}; `channels` and `chunk`.
[[nodiscard]] GPU read_gpu(fabric::Section section);
[[nodiscard]] Cutting read_cutting(fabric::Section& section);

}  // namespace verbena::jobs
