// ECN marking, and dropping before a queue is full, by queue length: RED's linear ramp (Floyd and
// Jacobson, 1993), on the instantaneous length, as data-centre switches configure it for DCQCN (Zhu
// et al., SIGCOMM 2015, 3.1), or on its average. With a profile for each port and a set of
// priorities it is what switches call WRED.
#pragma once

#include "base/prng.h"

namespace verbena::fabric {

// A frame is marked never below k_min bytes, always above k_max, and between with a probability
// that rises from 0 to p_max.
struct MarkingConfig {
  // NotECT: the action for a frame that would be marked but cannot be, since its sender does not
  // know ECN.
  enum class NotECT : u8 {
    kPass,  // nothing: in a network without loss
    kDrop,  // RFC 3168, 5; when it would be queued, whatever `mark_at` says
  };
  bool enabled = true;
  u64 k_min = 400'000, k_max = 1'600'000;
  double p_max = 0.2;
  u8 priorities = 0xff;  // the priorities whose frames are examined, a bit each
  // Weight of the newest length in the average; 1: that length alone. Floyd and Jacobson, 4: w_q,
  // 0.002. The average does not change while no frame arrives.
  double weight = 1;
  NotECT not_ect = NotECT::kPass;
};

// `bytes`: in the queue that the frame goes through, or their average.
[[nodiscard]] inline bool marks(const MarkingConfig& config, u64 bytes, PRNG& prng) {
  if (bytes <= config.k_min) return false;
  if (bytes > config.k_max) return true;
  return prng.chance(config.p_max * static_cast<double>(bytes - config.k_min) /
                     static_cast<double>(config.k_max - config.k_min));
}

// The length of one queue, averaged over the frames that come.
class AverageLength {
 public:
  u64 update(double weight, u64 bytes) {
    average_ += weight * (static_cast<double>(bytes) - average_);
    return static_cast<u64>(average_);
  }

 private:
  double average_ = 0;
};

}  // namespace verbena::fabric
