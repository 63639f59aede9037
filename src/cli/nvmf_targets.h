// The counters of NVMe over Fabrics targets in running processes, for `verbena stats`.
#pragma once

#include <sys/types.h>

#include <vector>

#include "nvmf/target_stats.h"

namespace verbena::cli {

// Asks the target of the process. Returns an empty vector if it has no target, or does not answer
// in time.
[[nodiscard]] std::vector<nvmf::SubsystemStats> nvmf_stats_of(pid_t pid);

}  // namespace verbena::cli
