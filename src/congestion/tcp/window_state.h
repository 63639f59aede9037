// The state of every TCP congestion control: a window and the threshold of slow start, in bytes.
// RFC 5681, 2: cwnd, ssthresh, SMSS.
#pragma once

#include <algorithm>
#include <limits>

#include "base/types.h"

namespace verbena::tcp {

struct WindowState {
  static constexpr u64 kNoThreshold = std::numeric_limits<u64>::max();  // not known yet

  u32 mss = 1460;                // bytes of a full segment's payload: SMSS
  u64 window = 0;                // that may be in flight: cwnd
  u64 threshold = kNoThreshold;  // ssthresh

  [[nodiscard]] bool in_slow_start() const { return window < threshold; }
  // Slow start by bytes. RFC 5681, 3.1, with RFC 3465, 2.2, L = 2: at most two segments for an
  // acknowledgement, so that a receiver that answers every second one doubles the window in a round
  // trip. Returns the part of `bytes` beyond the threshold, which is for congestion avoidance.
  [[nodiscard]] u64 slow_start(u64 bytes) {
    const u64 growth = std::min({bytes, u64{2} * mss, threshold - window});
    window += growth;
    return in_slow_start() ? 0 : bytes - growth;
  }
  // After a timeout: the loss window. RFC 5681, 3.1.
  void restart() { window = mss; }
  [[nodiscard]] u64 at_least_two(double bytes) const {
    return std::max(static_cast<u64>(bytes), u64{2} * mss);
  }
};

}  // namespace verbena::tcp
