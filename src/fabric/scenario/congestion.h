// How hosts control their rates: the section hosts.congestion_control, in the words of the papers
// and of adapters' settings.
#pragma once

#include <functional>

#include "congestion/parameters.h"
#include "fabric/scenario/section.h"
#include "fabric/topology.h"

namespace verbena::fabric {

// The parameters for a line of that rate.
using CongestionSettings = std::function<CongestionParameters(Rate line_rate)>;
// CongestionPresets: returns the values that are not given, by the name of an existing algorithm.
using CongestionPresets = std::function<CongestionParameters(std::string_view name, Rate)>;
[[nodiscard]] CongestionParameters usual_preset(std::string_view name, Rate line_rate);
// `usual`: the algorithm where none is named.
[[nodiscard]] CongestionSettings read_congestion(Section section, std::vector<Rate> line_rates,
                                                 std::string_view usual,
                                                 const CongestionPresets& presets = usual_preset);
// Returns the rates of the links that hosts have, each once.
[[nodiscard]] std::vector<Rate> rates_of_hosts(const Topology& topology);

}  // namespace verbena::fabric
