// The screen of `verbena top`: a line for each QP, the busiest first, with rates since the previous
// screen.
#pragma once

#include <string>

#include "cli/stats_report.h"

namespace verbena::cli {

struct ScreenSize {
  std::size_t columns = 80, rows = 24;
};

// Lines with '\n' at their ends, none wider than the screen and no more than fit, for a terminal;
// `size` nullptr: all, for a file. `before`: nullptr, or an earlier report.
[[nodiscard]] std::string top_screen(const StatsReport& now, const StatsReport* before,
                                     const ScreenSize* size);

// "1.50M", in at most 6 characters: K, M, G, T are powers of 1000.
[[nodiscard]] std::string short_number(double value);

}  // namespace verbena::cli
