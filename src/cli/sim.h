// `verbena sim`: runs a scenario on the simulated fabric.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/failure.h"

namespace verbena::cli {

// What to print. The results are in the request's output folder.
[[nodiscard]] Expected<std::string> sim(const SimRequest& request);

}  // namespace verbena::cli
