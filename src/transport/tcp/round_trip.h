// RoundTrip: the time of acknowledgements, and how long to wait for one. RFC 6298.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace verbena::tcp {

class RoundTrip {
 public:
  // A measurement of a segment that was sent once. Karn's algorithm, section 3.
  void on_sample(Duration sample) {
    least_ = has_sample_ ? std::min(least_, sample) : sample;
    if (!has_sample_) {  // 2.2
      smoothed_ = sample;
      variation_ = sample / 2;
      has_sample_ = true;
      return;
    }
    const Duration error = smoothed_ > sample ? smoothed_ - sample : sample - smoothed_;  // 2.3
    variation_ = (variation_ * 3 + error) / 4;
    smoothed_ = (smoothed_ * 7 + sample) / 8;
  }
  [[nodiscard]] bool has_sample() const { return has_sample_; }
  [[nodiscard]] Duration smoothed() const { return smoothed_; }
  [[nodiscard]] Duration variation() const { return variation_; }
  [[nodiscard]] Duration least() const { return least_; }
  // Without backing off. As in Linux, `least` is that of the variation's part, so that the timeout
  // always exceeds the round trip by so much (tcp_rtt_estimator).
  [[nodiscard]] Duration timeout(Duration initial, Duration least, Duration most) const {
    if (!has_sample_) return initial;
    return std::min(most, smoothed_ + std::max(least, variation_ * 4));
  }

 private:
  bool has_sample_ = false;
  Duration smoothed_{}, variation_{}, least_{};
};

}  // namespace verbena::tcp
