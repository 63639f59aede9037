// `verbena stats` and `verbena top`: the counters of running programs' devices.
#pragma once

#include <functional>
#include <string_view>

#include "cli/failure.h"
#include "cli/requests.h"

namespace verbena::cli {

// Writes to standard output. Returns false if the output cannot be written.
using Print = std::function<bool(std::string_view)>;

[[nodiscard]] Expected<void> stats(const StatsRequest& request, const Print& print);
[[nodiscard]] Expected<void> top(const TopRequest& request, const Print& print);

}  // namespace verbena::cli
