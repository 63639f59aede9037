// `verbena sim`: runs a scenario on the simulated fabric.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/failure.h"

namespace verbena::cli {

struct SimOutcome {
  std::string output;                // what to print
  bool was_interrupted = false;      // by SIGINT or SIGTERM: the results are partial
  std::vector<std::string> unmet{};  // expectations, and what there is instead
};

// The results are in the request's output folder.
[[nodiscard]] Expected<SimOutcome> sim(const SimRequest& request);

}  // namespace verbena::cli
