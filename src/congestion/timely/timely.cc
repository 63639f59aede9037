#include "congestion/timely/timely.h"

#include <algorithm>

namespace verbena {
namespace {

double nanoseconds(Duration d) { return static_cast<double>(d.ps()) * 1e-3; }

}  // namespace

bool TIMELYParameters::valid() const {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  return min_rate >= kbps(1) && min_rate <= line_rate && line_rate != Rate::unlimited() &&
         is_share(alpha) && is_share(beta) && delta >= kbps(1) && t_low >= ns(0) &&
         t_low <= t_high && t_high <= sec(10) && min_rtt >= ns(1) && min_rtt <= sec(10) &&
         segment_octets >= 1;
}

void TIMELY::on_ack(const AckSignal& ack, Time) {
  octets_ += ack.acknowledged_octets;
  if (octets_ < p_.segment_octets || ack.round_trip <= Duration{}) return;
  octets_ = 0;
  on_segment(ack.round_trip);
}

void TIMELY::on_segment(Duration rtt) {
  if (last_rtt_ == Duration{}) last_rtt_ = rtt;
  diff_ns_ = (1 - p_.alpha) * diff_ns_ + p_.alpha * nanoseconds(rtt - last_rtt_);
  last_rtt_ = rtt;
  const double gradient = diff_ns_ / nanoseconds(p_.min_rtt);
  if (rtt < p_.t_low) return add(1);
  if (rtt > p_.t_high)
    return multiply(1 - p_.beta * (1 - nanoseconds(p_.t_high) / nanoseconds(rtt)));
  if (gradient > 0) {
    falling_ = 0;
    return multiply(1 - p_.beta * std::min(gradient, 1.0));
  }
  falling_ = std::min(falling_ + 1, p_.hyper_after);
  add(falling_ == p_.hyper_after ? p_.hyper_factor : 1);
}

void TIMELY::add(u64 steps) {
  rate_ = std::min(p_.line_rate, Rate::from_bps(rate_.bps() + steps * p_.delta.bps()));
}

void TIMELY::multiply(double factor) {
  const auto lowered = static_cast<u64>(static_cast<double>(rate_.bps()) * factor);
  rate_ = std::max(p_.min_rate, Rate::from_bps(lowered));
}

}  // namespace verbena
