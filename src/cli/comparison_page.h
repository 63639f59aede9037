// A page of several results side by side, for a browser without a network: a row for each number, a
// bar for each run, and which expectations were not met.
#pragma once

#include <string>
#include <vector>

#include "cli/sim_result.h"

namespace verbena::cli {

// `text`: below the table, as it is; "": none.
[[nodiscard]] std::string comparison_page(const std::string& title,
                                          const std::vector<SimResult>& results,
                                          const std::string& text = "");

}  // namespace verbena::cli
