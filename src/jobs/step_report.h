// The results of a step of a job: in words for a terminal, and as a timeline for Perfetto.
#pragma once

#include <string>

#include "jobs/step_run.h"

namespace verbena::jobs {

[[nodiscard]] std::string text_of(const Job& job, const StepResult& result);

// Trace Event Format (JSON): a process for each node, for each GPU a thread that computes and one
// for each communicator. Perfetto's and Chromium's viewers open it. At most kTracedGPUs GPUs, the
// first.
inline constexpr u32 kTracedGPUs = 256;
[[nodiscard]] std::string trace_of(const Job& job, const StepResult& result);

}  // namespace verbena::jobs
