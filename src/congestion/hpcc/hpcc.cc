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
    : p_(parameters), window_(octets_in(parameters.line_rate, parameters.base_rtt)) {
  for (Loop& loop : loops_) loop.reference = window_;
}

void HPCC::on_ack(const AckSignal& ack, Time) {
  // What was in flight at the last update is acknowledged: a round trip has passed.
  new_round_ = ack.acknowledged_octets > round_left_;
  round_left_ = new_round_ ? ack.in_flight_octets : round_left_ - ack.acknowledged_octets;
  if (ack.path == nullptr) return;
  if (p_.reaction == HPCCParameters::Reaction::kEachRoundTrip && !new_round_) return;
  if (ack.path->count != 0 && ack.path->count == last_.count) {
    switch (p_.loop) {
      case HPCCParameters::Loop::kOne: use_highest(*ack.path); break;
      case HPCCParameters::Loop::kEachHop: use_each(*ack.path); break;
    }
  }
  last_ = *ack.path;
}

HPCC::Load HPCC::load_of(const HopTelemetry& hop, const HopTelemetry& last) const {
  const Duration elapsed = hop.at - last.at;
  if (elapsed <= Duration{} || hop.rate == Rate{}) return {};
  const auto queue = static_cast<double>(std::min(hop.queued_octets, last.queued_octets));
  const auto sent = static_cast<double>(hop.sent_octets - last.sent_octets);
  return {.u = queue / octets_in(hop.rate, p_.base_rtt) + sent / octets_in(hop.rate, elapsed),
          .elapsed = elapsed};
}

void HPCC::use_highest(const PathTelemetry& path) {
  Load most;
  for (u32 i = 0; i < path.count; ++i) {
    const Load load = load_of(path.hops[i], last_.hops[i]);
    if (load.u > most.u) most = load;
  }
  if (most.elapsed == Duration{}) return;
  measure(loops_[0], most);
  window_ = adjust(loops_[0]);
}

void HPCC::use_each(const PathTelemetry& path) {
  double least = octets_in(p_.line_rate, p_.base_rtt);
  for (u32 i = 0; i < path.count; ++i) {
    const Load load = load_of(path.hops[i], last_.hops[i]);
    if (load.elapsed == Duration{}) continue;
    measure(loops_[i], load);
    least = std::min(least, adjust(loops_[i]));
  }
  window_ = least;
}

void HPCC::measure(Loop& loop, const Load& load) const {
  const double weight = std::min(1.0, load.elapsed.seconds() / p_.base_rtt.seconds());
  loop.utilization = (1 - weight) * loop.utilization + weight * load.u;
}

// The new window.
double HPCC::adjust(Loop& loop) const {
  const bool multiplies = loop.utilization >= p_.eta || loop.stage >= p_.max_stage;
  const double scaled = multiplies ? loop.reference / (loop.utilization / p_.eta) : loop.reference;
  const double window = std::clamp(scaled + p_.additive_octets, octets_in(p_.min_rate, p_.base_rtt),
                                   octets_in(p_.line_rate, p_.base_rtt));
  if (new_round_) {
    loop.stage = multiplies ? 0 : loop.stage + 1;
    loop.reference = window;
  }
  return window;
}

Rate HPCC::rate(Time) const {
  const double bps = window_ * 8e12 / static_cast<double>(p_.base_rtt.ps());
  return std::clamp(Rate::from_bps(static_cast<u64>(bps)), p_.min_rate, p_.line_rate);
}

}  // namespace verbena
