// report.html: a simulation's results as one page that needs no network and no other file.
#pragma once

#include <string>

#include "fabric/results/summary.h"

namespace verbena::fabric {

[[nodiscard]] std::string report_html(const Simulation& simulation, const Summary& summary);

}  // namespace verbena::fabric
