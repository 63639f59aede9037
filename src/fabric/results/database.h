// results.sqlite: all that a simulation has to tell, as tables. docs/simulator.md has the schema.
// Same simulation, same bytes.
#pragma once

#include <string>

#include "fabric/results/summary.h"

namespace verbena::fabric {

// Replaces the file. Returns the error; "" if there is none.
[[nodiscard]] std::string write_database(const std::string& path, const Simulation& simulation,
                                         const Summary& summary);

}  // namespace verbena::fabric
