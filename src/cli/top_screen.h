// The screen of `verbena top`: a line for each QP, the busiest first, with rates since the previous
// screen.
#pragma once

#include <string>

#include "cli/stats_report.h"

namespace verbena::cli {

struct ScreenSize {
  std::size_t columns = 80, rows = 24;
};

// Returns lines that end with '\n'. For a terminal no line is wider than the screen, and there are
// no more lines than fit. If `size` is nullptr, returns all lines, for a file. `before`: nullptr,
// or an earlier report.
[[nodiscard]] std::string top_screen(const StatsReport& now, const StatsReport* before,
                                     const ScreenSize* size);

// "1.50M", in at most 6 characters: K, M, G, T are powers of 1000.
[[nodiscard]] std::string short_number(double value);

}  // namespace verbena::cli
