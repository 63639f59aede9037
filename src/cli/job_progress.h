// The progress of a job's simulation, in words.
#pragma once

#include <string>

#include "jobs/stop.h"

namespace verbena::cli {

// `seconds`: of real time, since it began.
[[nodiscard]] std::string text_of(const jobs::Progress& progress, double seconds);

}  // namespace verbena::cli
