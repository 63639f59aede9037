// Runs that are shared out: to the cores of this machine, and where mpirun has started several
// processes, to all of them, each of which takes every so many-th. What comes out does not depend
// on how many there are.
#pragma once

#include <functional>
#include <vector>

#include "cli/sim_run.h"
#include "cli/stop_signal.h"

namespace verbena::cli {

using StopAsked = std::function<bool()>;  // of several threads at once
using DoRun = std::function<void(SimRun&, const StopAsked&)>;

enum class ShareEnd { kAll, kStopped, kElsewhere };  // kElsewhere: process 0 has the results

// A mistake of one ends all, where there are several processes.
[[nodiscard]] Expected<ShareEnd> run_all(std::vector<SimRun>& runs, const DoRun& run);

}  // namespace verbena::cli
