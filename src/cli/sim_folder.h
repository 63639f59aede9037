// `verbena sim FOLDER`: a scenario of HPCC's ns-3 model, by that model's conventions.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/failure.h"

namespace verbena::cli {

// What to print. The results are in the request's output folder.
[[nodiscard]] Expected<std::string> sim_folder(const SimRequest& request);

}  // namespace verbena::cli
