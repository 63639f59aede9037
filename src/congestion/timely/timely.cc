#include "congestion/timely/timely.h"

#include <algorithm>

namespace verbena {

bool TIMELYParameters::valid() const {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  return min_rate >= kbps(1) && min_rate <= line_rate && line_rate != Rate::unlimited() &&
         is_share(alpha) && is_share(beta) && delta >= kbps(1) && hyper_delta >= kbps(1) &&
         t_low >= ns(0) && t_low <= t_high && t_high <= sec(10) && min_rtt >= ns(1) &&
         min_rtt <= sec(10) && segment_bytes >= 1;
}

void TIMELY::on_ack(const AckSignal& ack, Time) {
  if (counts(ack)) on_round_trip(ack.round_trip);
}

bool TIMELY::counts(const AckSignal& ack) {
  bytes_ += ack.acknowledged_bytes;
  if (ack.round_trip <= Duration{}) return false;
  switch (p_.variant) {
    case Variant::kPaper:
      if (bytes_ < p_.segment_bytes) return false;
      break;
    case Variant::kHPCCModel:
      if (bytes_ <= round_bytes_) return false;
      round_bytes_ = ack.in_flight_bytes;
      break;
  }
  bytes_ = 0;
  return true;
}

void TIMELY::on_round_trip(Duration rtt) {
  const bool is_first = last_rtt_ == Duration{};
  if (is_first) last_rtt_ = rtt;
  diff_ns_ = (1 - p_.alpha) * diff_ns_ + p_.alpha * (rtt - last_rtt_).nanoseconds();
  last_rtt_ = rtt;
  if (is_first && p_.variant == Variant::kHPCCModel) return;
  const double gradient = diff_ns_ / p_.min_rtt.nanoseconds();
  if (rtt < p_.t_low || (rtt <= p_.t_high && gradient <= 0)) return rise(rtt);
  if (rtt <= p_.t_high || p_.variant == Variant::kHPCCModel) rises_ = 0;
  if (rtt > p_.t_high)
    return multiply(1 - p_.beta * (1 - p_.t_high.nanoseconds() / rtt.nanoseconds()));
  const bool is_bounded = p_.variant == Variant::kPaper;
  multiply(1 - p_.beta * (is_bounded ? std::min(gradient, 1.0) : gradient));
}

void TIMELY::rise(Duration rtt) {
  switch (p_.variant) {
    case Variant::kPaper:
      if (rtt >= p_.t_low) rises_ = std::min(rises_ + 1, p_.hyper_after);
      return add(rtt >= p_.t_low && rises_ == p_.hyper_after ? p_.hyper_delta : p_.delta);
    case Variant::kHPCCModel:
      add(rises_ < p_.hyper_after ? p_.delta : p_.hyper_delta);
      rises_ = std::min(rises_ + 1, p_.hyper_after);
      return;
  }
}

void TIMELY::add(Rate step) {
  rate_ = std::min(p_.line_rate, Rate::from_bps(rate_.bps() + step.bps()));
}

void TIMELY::multiply(double factor) {
  const auto lowered = static_cast<u64>(static_cast<double>(rate_.bps()) * std::max(factor, 0.0));
  rate_ = std::max(p_.min_rate, Rate::from_bps(lowered));
}

}  // namespace verbena
