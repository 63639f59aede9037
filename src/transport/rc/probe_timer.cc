#include "transport/rc/probe_timer.h"

#include <algorithm>

namespace verbena {

void ProbeTimer::on_sent(PSN psn, Time now) {
  if (!timed_) timed_ = {psn, now};
}

void ProbeTimer::on_resent() {
  peer_is_awake_ = false;
  timed_.reset();
}

// RFC 6298, 2.2 and 2.3.
void ProbeTimer::measure(Duration round_trip) {
  if (!measured_) {
    measured_ = true;
    smoothed_ = round_trip;
    variation_ = round_trip / 2;
    return;
  }
  const Duration off = std::max(smoothed_ - round_trip, round_trip - smoothed_);
  variation_ = variation_ + (off - variation_) / 4;
  smoothed_ = smoothed_ + (round_trip - smoothed_) / 8;
}

Duration ProbeTimer::timeout() const {
  const Duration floor = floor_.value_or(kCeiling);
  if (!measured_) return peer_is_awake_ ? floor : floor * kUnmeasured;
  const Duration wait = std::min(smoothed_ + variation_ * 4, kCeiling);
  return peer_is_awake_ ? wait : std::max(wait, floor);
}

// Probes are due after 1, 3, 7, ... times the first wait: each wait is twice the one before.
Time ProbeTimer::next(Time since) const {
  if (!floor_ || probes_ == kMaxProbes) return Time::never();
  return since + timeout() * ((i64{2} << probes_) - 1);
}

}  // namespace verbena
