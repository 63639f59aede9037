// The command line of `verbena`, read: which command, with what. It does nothing yet.
#pragma once

#include <span>
#include <string>

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

// `arguments`: without the program's own name.
[[nodiscard]] Expected<Request> parse_command_line(std::span<const std::string> arguments);

}  // namespace verbena::cli
