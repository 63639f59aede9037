// Results side by side: a row for each number, a column for each run.
#pragma once

#include <string>
#include <vector>

#include "cli/sim_result.h"

namespace verbena::cli {

using SimColumn = SimResult;  // "-" stands for lines that others have and it has not

// Returns the table for a terminal of `width` characters; columns that do not fit continue below.
[[nodiscard]] std::string table_text(const std::vector<SimColumn>& columns, std::size_t width);
[[nodiscard]] std::string table_csv(const std::vector<SimColumn>& columns);

}  // namespace verbena::cli
