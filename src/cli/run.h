// `verbena run`: sets the environment, and becomes the program.
#pragma once

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

// Returns only when the program could not be started.
[[nodiscard]] Failure run(const RunRequest& request);

}  // namespace verbena::cli
