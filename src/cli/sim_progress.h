// How far the simulation of a scenario is.
#pragma once

#include "cli/progress_line.h"
#include "fabric/results/simulation.h"

namespace verbena::cli {

class SimProgress {
 public:
  explicit SimProgress(const fabric::Simulation& simulation);

  void show();  // when it is time to; cheap

 private:
  [[nodiscard]] double part_done() const;

  const fabric::Simulation& simulation_;
  ProgressLine line_;
  u64 octets_ = 0;  // of all flows
};

}  // namespace verbena::cli
