// `verbena nic`: the process that owns the links of virtual functions, and its status.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"
#include "cli/stats.h"

namespace verbena::cli {

// Runs until a signal ends it, or prints the status.
[[nodiscard]] Expected<void> nic(const NICRequest& request, const Print& print);

}  // namespace verbena::cli
