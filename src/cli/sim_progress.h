// How far a simulation is, on standard error: a line that is drawn again and again where that is a
// terminal, else a line now and then.
#pragma once

#include <chrono>

#include "fabric/results/simulation.h"

namespace verbena::cli {

class SimProgress {
 public:
  explicit SimProgress(const fabric::Simulation& simulation);
  ~SimProgress();
  SimProgress(const SimProgress&) = delete;
  SimProgress& operator=(const SimProgress&) = delete;

  void show();  // when it is time to; cheap

 private:
  using WallClock = std::chrono::steady_clock;
  [[nodiscard]] double part_done() const;

  const fabric::Simulation& simulation_;
  const bool is_terminal_;
  const WallClock::time_point start_ = WallClock::now();
  WallClock::time_point next_;
  u64 octets_ = 0;  // of all flows
  bool shown_ = false;
};

}  // namespace verbena::cli
