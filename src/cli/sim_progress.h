// SimProgress: a progress line for the simulation of some flows.
#pragma once

#include <chrono>
#include <span>

#include "cli/progress_line.h"
#include "fabric/network.h"

namespace verbena::cli {

// The real time between two checks for a signal and two updates of the progress line.
inline constexpr std::chrono::milliseconds kBetweenLooks(50);

class SimProgress {
 public:
  // All arguments outlive the object. `end`: the simulated time at which the run ends; with never()
  // the run ends with the last flow.
  SimProgress(const fabric::Network& network, std::span<const fabric::Flow> flows, Time end);

  void show(Time now);  // at intervals; cheap

 private:
  [[nodiscard]] double part_done(Time now) const;

  const fabric::Network& network_;
  const std::size_t flows_;
  std::vector<fabric::NodeIndex> senders_;
  const Time end_;
  ProgressLine line_;
  u64 bytes_ = 0;  // of all flows
};

}  // namespace verbena::cli
