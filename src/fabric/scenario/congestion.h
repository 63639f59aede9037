// How hosts control their rates: the section hosts.congestion_control, in the words of the papers
// and of adapters' settings.
#pragma once

#include <functional>

#include "congestion/parameters.h"
#include "fabric/scenario/section.h"

namespace verbena::fabric {

// The parameters for a line of that rate.
using CongestionSettings = std::function<CongestionParameters(Rate line_rate)>;
// `usual`: the algorithm where none is named.
[[nodiscard]] CongestionSettings read_congestion(Section section, std::vector<Rate> line_rates,
                                                 std::string_view usual);

}  // namespace verbena::fabric
