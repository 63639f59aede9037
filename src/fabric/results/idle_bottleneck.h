// The bottleneck of a simulation, and what part of the time it was idle while senders had data for
// it. Congestion control that takes too much away shows there, and nowhere else in a summary.
#pragma once

#include <optional>

#include "fabric/results/simulation.h"

namespace verbena::fabric {

struct IdleBottleneck {
  u32 link_end = 0;  // the link that sent for longest
  double idle = 0;   // of the time in which flows for it were there: 0 .. 1
  // All those flows had this way alone, senders were told to slow down, and neither faults nor
  // pauses explain the idle time.
  bool is_congestion_control = false;
};

// Returns nullopt if no flow has sent anything.
[[nodiscard]] std::optional<IdleBottleneck> idle_bottleneck(const Simulation& simulation);

}  // namespace verbena::fabric
