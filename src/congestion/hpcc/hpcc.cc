#include "congestion/hpcc/hpcc.h"

#include <algorithm>
#include <cmath>

namespace verbena {
namespace {

double bps(Rate rate) { return static_cast<double>(rate.bps()); }

double bytes_in(Rate rate, Duration time) { return bps(rate) * time.seconds() / 8; }

}  // namespace

bool HPCCParameters::valid() const {
  return min_rate >= kbps(1) && min_rate <= line_rate && line_rate != Rate::unlimited() &&
         base_rtt >= ns(1) && base_rtt <= sec(10) && eta > 0 && eta <= 1;
}

HPCC::HPCC(const HPCCParameters& parameters)
    : p_(parameters),
      pipe_(p_.pipe_bytes != 0 ? static_cast<double>(p_.pipe_bytes)
                               : bytes_in(p_.line_rate, p_.base_rtt)),
      step_(Rate::from_bps(
          static_cast<u64>(std::llround(p_.additive_bytes * 8 / p_.base_rtt.seconds())))),
      rate_(p_.line_rate) {
  for (Loop& loop : loops_) loop.reference = rate_;
}

u64 HPCC::bytes_in_flight(Rate rate) const {
  return static_cast<u64>(std::llround(bytes_in(rate, p_.base_rtt)));
}

void HPCC::on_ack(const AckSignal& ack, Time) {
  // The data in flight at the last update is acknowledged: a round trip has passed.
  new_round_ = ack.acknowledged_bytes > round_left_;
  round_left_ = new_round_ ? ack.in_flight_bytes : round_left_ - ack.acknowledged_bytes;
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
  const auto queue = static_cast<double>(std::min(hop.queued_bytes, last.queued_bytes));
  const auto sent = static_cast<double>(hop.sent_bytes - last.sent_bytes);
  const double sent_bps = sent * 8 / elapsed.seconds();
  return {.u = sent_bps / bps(hop.rate) + queue * bps(p_.line_rate) / bps(hop.rate) / pipe_,
          .elapsed = elapsed};
}

void HPCC::use_highest(const PathTelemetry& path) {
  Load most;  // if no hop has sent anything, U stays
  bool is_new = false;
  for (u32 i = 0; i < path.count; ++i) {
    const Load load = load_of(path.hops[i], last_.hops[i]);
    is_new |= load.elapsed != Duration{};
    if (load.u > most.u) most = load;
  }
  if (!is_new) return;
  measure(loops_[0], most);
  rate_ = adjust(loops_[0]);
}

void HPCC::use_each(const PathTelemetry& path) {
  Rate least = p_.line_rate;
  for (u32 i = 0; i < path.count; ++i) {
    const Load load = load_of(path.hops[i], last_.hops[i]);
    if (load.elapsed == Duration{}) continue;
    measure(loops_[i], load);
    least = std::min(least, adjust(loops_[i]));
  }
  rate_ = least;
}

void HPCC::measure(Loop& loop, const Load& load) const {
  const double base = p_.base_rtt.nanoseconds();
  const double elapsed = std::min(load.elapsed.nanoseconds(), base);
  loop.utilization = (loop.utilization * (base - elapsed) + load.u * elapsed) / base;
}

// Returns the new rate.
Rate HPCC::adjust(Loop& loop) const {
  const double excess = loop.utilization / p_.eta;
  const bool multiplies = excess >= 1 || loop.stage >= p_.max_stage;
  const double scaled = multiplies ? bps(loop.reference) / excess : bps(loop.reference);
  const auto whole = static_cast<u64>(std::min(scaled, bps(p_.line_rate)));
  const Rate rate = std::clamp(Rate::from_bps(whole + step_.bps()), p_.min_rate, p_.line_rate);
  if (new_round_) {
    loop.stage = multiplies ? 0 : loop.stage + 1;
    loop.reference = rate;
  }
  return rate;
}

}  // namespace verbena
