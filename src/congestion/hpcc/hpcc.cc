#include "congestion/hpcc/hpcc.h"

#include <algorithm>

namespace verbena {
namespace {

double octets_in(Rate rate, Duration time) {
  return static_cast<double>(rate.bps()) * static_cast<double>(time.ps()) / 8e12;
}

}  // namespace

bool HPCCParameters::valid() const {
  return min_rate >= kbps(1) && min_rate <= line_rate && line_rate != Rate::unlimited() &&
         base_rtt >= ns(1) && base_rtt <= sec(10) && eta > 0 && eta <= 1;
}

HPCC::HPCC(const HPCCParameters& parameters)
    : p_(parameters),
      window_(octets_in(parameters.line_rate, parameters.base_rtt)),
      reference_(window_) {}

void HPCC::on_ack(const AckSignal& ack, Time) {
  // What was in flight at the last update is acknowledged: a round trip has passed.
  new_round_ = ack.acknowledged_octets > round_left_;
  round_left_ = new_round_ ? ack.in_flight_octets : round_left_ - ack.acknowledged_octets;
  if (ack.path == nullptr) return;
  const bool is_measured = measure(*ack.path);
  last_ = *ack.path;
  if (is_measured) adjust();
}

// False: there is nothing to compare with.
bool HPCC::measure(const PathTelemetry& path) {
  if (path.count == 0 || path.count != last_.count) return false;
  double most = 0;
  Duration elapsed_of_most{};
  for (u32 i = 0; i < path.count; ++i) {
    const HopTelemetry &hop = path.hops[i], &last = last_.hops[i];
    const Duration elapsed = hop.at - last.at;
    if (elapsed <= Duration{} || hop.rate == Rate{}) continue;
    const auto queue = static_cast<double>(std::min(hop.queued_octets, last.queued_octets));
    const auto sent = static_cast<double>(hop.sent_octets - last.sent_octets);
    const double u = queue / octets_in(hop.rate, p_.base_rtt) + sent / octets_in(hop.rate, elapsed);
    if (u > most) {
      most = u;
      elapsed_of_most = elapsed;
    }
  }
  if (elapsed_of_most == Duration{}) return false;
  const double weight = std::min(1.0, elapsed_of_most.seconds() / p_.base_rtt.seconds());
  utilization_ = (1 - weight) * utilization_ + weight * most;
  return true;
}

void HPCC::adjust() {
  const bool multiplies = utilization_ >= p_.eta || stage_ >= p_.max_stage;
  const double scaled = multiplies ? reference_ / (utilization_ / p_.eta) : reference_;
  window_ = std::clamp(scaled + static_cast<double>(p_.additive_octets),
                       octets_in(p_.min_rate, p_.base_rtt), octets_in(p_.line_rate, p_.base_rtt));
  if (!new_round_) return;
  stage_ = multiplies ? 0 : stage_ + 1;
  reference_ = window_;
}

Rate HPCC::rate(Time) const {
  const double bps = window_ * 8e12 / static_cast<double>(p_.base_rtt.ps());
  return std::clamp(Rate::from_bps(static_cast<u64>(bps)), p_.min_rate, p_.line_rate);
}

}  // namespace verbena
