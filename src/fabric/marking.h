// ECN marking by queue length: RED's linear ramp on the instantaneous length, as data-centre
// switches configure it for DCQCN. Floyd and Jacobson, 1993; RFC 3168; Zhu et al., SIGCOMM
// 2015, 3.1.
#pragma once

#include "base/prng.h"

namespace verbena::fabric {

// A frame is marked never below k_min octets, always above k_max, and between with a probability
// that rises from 0 to p_max.
struct MarkingConfig {
  bool enabled = true;
  u64 k_min = 400'000, k_max = 1'600'000;
  double p_max = 0.2;
};

// `octets`: in the queue that the frame goes through.
[[nodiscard]] inline bool marks(const MarkingConfig& config, u64 octets, PRNG& prng) {
  if (octets <= config.k_min) return false;
  if (octets > config.k_max) return true;
  return prng.chance(config.p_max * static_cast<double>(octets - config.k_min) /
                     static_cast<double>(config.k_max - config.k_min));
}

}  // namespace verbena::fabric
