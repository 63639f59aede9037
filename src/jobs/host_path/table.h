// The steps of all host paths as a table for people.
#pragma once

#include <string>

#include "jobs/host_path/host_path.h"

namespace verbena::jobs {

[[nodiscard]] std::string host_path_table(u32 cores);

}  // namespace verbena::jobs
