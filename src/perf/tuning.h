// Tuning: tries algorithms and chunks for each operation and size, and writes the table of the
// fastest ones, with the costs by which the simulator predicts (coll/costs.h).
#pragma once

#include <string>

#include <verbena/collectives.h>

#include "perf/options.h"

namespace verbena::perf {

// All ranks call tune(); rank 0 writes the file. Returns the error, or "" if there is none.
[[nodiscard]] std::string tune(const Options& options, verbena_comm* comm);

}  // namespace verbena::perf
