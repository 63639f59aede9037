// Each algorithm by its name, with its usual parameters for a line rate.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "congestion/parameters.h"

namespace verbena {

// All names: "off" (uncontrolled), "dcqcn", "dcqcn_nvidia" (as adapters are shipped),
// "dcqcn_paper", "window" (fixed), "timely", "swift", "hpcc", "dctcp", "ib_cc".
[[nodiscard]] std::span<const std::string_view> congestion_names();
// Returns nullopt if there is no such name. `line_rate`: 1 Mb/s and more, not unlimited.
[[nodiscard]] std::optional<CongestionParameters> congestion_named(std::string_view name,
                                                                   Rate line_rate);

}  // namespace verbena
