// The faults of `verbena run`: rules given on the command line and in files.
#pragma once

#include <string>
#include <vector>

#include "cli/failure.h"

namespace verbena::cli {

// Returns all rules in one text, those of the command line first. If a file cannot be read or a
// rule is wrong, the failure is one line that names the file.
[[nodiscard]] Expected<std::string> read_faults(const std::vector<std::string>& rules,
                                                const std::vector<std::string>& files);

}  // namespace verbena::cli
