#include "congestion/swift/swift.h"

#include <algorithm>
#include <cmath>

namespace verbena {

bool SwiftParameters::valid() const {
  return line_rate >= kbps(1) && line_rate != Rate::unlimited() && packet_bytes >= 1 &&
         base_target >= ns(1) && base_target <= sec(10) && flow_scaling_range >= ns(0) &&
         flow_scaling_range <= sec(10) && flow_scaling_min_window > 0 &&
         flow_scaling_max_window > flow_scaling_min_window && additive_increase > 0 && beta >= 0 &&
         beta <= 1 && max_decrease >= 0 && max_decrease < 1 && min_window > 0 &&
         max_window >= min_window && max_window <= 1e9;
}

double SwiftParameters::longest_useful_window() const {
  const Duration longest_target = base_target + flow_scaling_range;
  const double bytes = static_cast<double>(line_rate.bps()) / 8 * longest_target.seconds();
  return std::max(1.0, bytes / packet_bytes);
}

Swift::Swift(const SwiftParameters& parameters) : p_(parameters), window_(parameters.max_window) {
  const double least = 1 / std::sqrt(p_.flow_scaling_max_window);
  const double most = 1 / std::sqrt(p_.flow_scaling_min_window);
  scaling_alpha_ = p_.flow_scaling_range.seconds() / (most - least);
  scaling_beta_ = -scaling_alpha_ * least;
}

Duration Swift::target_delay() const {
  const double scaling = scaling_alpha_ / std::sqrt(window_) + scaling_beta_;
  const double bounded = std::clamp(scaling, 0.0, p_.flow_scaling_range.seconds());
  return p_.base_target + ps(static_cast<i64>(bounded * 1e12));
}

void Swift::on_ack(const AckSignal& ack, Time now) {
  timeouts_ = 0;
  if (ack.round_trip <= Duration{}) return;
  rtt_ = ack.round_trip;
  const Duration target = target_delay();
  if (rtt_ >= target) {
    const double excess = (rtt_ - target).seconds() / rtt_.seconds();
    return decrease(1 - p_.beta * excess, now);
  }
  const double packets = static_cast<double>(ack.acknowledged_bytes) / p_.packet_bytes;
  set(window_ + p_.additive_increase * packets / std::max(window_, 1.0));
}

void Swift::on_loss(Time now) { decrease(1 - p_.max_decrease, now); }

void Swift::on_timeout(Time now) {
  if (++timeouts_ >= p_.timeouts_to_reset) return set(p_.min_window);
  on_loss(now);
}

// Decreases at most once in a round trip.
void Swift::decrease(double factor, Time now) {
  if (has_decreased_ && now - decreased_ < rtt_) return;
  set(window_ * std::max(factor, 1 - p_.max_decrease));
  decreased_ = now;
  has_decreased_ = true;
}

void Swift::set(double window) { window_ = std::clamp(window, p_.min_window, p_.max_window); }

Rate Swift::rate(Time) const {
  if (window_ >= 1 || rtt_ == Duration{}) return p_.line_rate;
  const double bps = window_ * p_.packet_bytes * 8 / rtt_.seconds();
  return std::clamp(Rate::from_bps(static_cast<u64>(bps)), Rate::from_bps(1), p_.line_rate);
}

u64 Swift::window(Time) const { return static_cast<u64>(std::max(window_, 1.0) * p_.packet_bytes); }

}  // namespace verbena
