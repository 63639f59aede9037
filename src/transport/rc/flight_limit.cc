#include "transport/rc/flight_limit.h"

#include <algorithm>

namespace verbena {

namespace {

// So many losses in one round trip, one in this share of the window, show that the path is
// overloaded and not that a link is bad. (BBR allows for 2 %, draft-ietf-ccwg-bbr, 5.5.1; windows
// of few packets need more.)
constexpr u32 kBurstShare = 8;

}  // namespace

FlightLimit::FlightLimit(const EngineParts& parts, const RCLimits& limits)
    : response_(limits.path.loss_response),
      window_(limits.path.window_packets),
      share_(parts.window) {
  if (parts.congestion != nullptr)
    signals_.emplace(*parts.congestion, std::max(limits.path.window_packets, RCLimits::kMinWindow));
}

void FlightLimit::begin(u32 window, PSN first) {
  window_ = LossWindow(window);
  event_end_ = first;
  event_losses_ = 0;
}

void FlightLimit::on_response(const SendWindow& window, PSN before, u32 mtu,
                              const PathTelemetry* path, Time now) {
  if (!signals_ || window.unacked() == before) return;
  signals_->on_acknowledged(
      {.before = before, .unacked = window.unacked(), .in_flight = window.in_flight(), .mtu = mtu},
      path, now);
}

void FlightLimit::on_nak(Time now) {
  if (signals_) signals_->on_nak(now);
  on_loss();
}

void FlightLimit::on_timeout(Time now) {
  if (signals_) signals_->on_timeout(now);
  on_loss();
}

void FlightLimit::on_selective_repeat(const SendWindow& window, u32 psns, Time now) {
  if (!window.unacked().before(event_end_)) {
    event_end_ = window.frontier();
    event_losses_ = 0;
    if (signals_) signals_->on_nak(now);
  }
  const u32 in_flight = window.unacked().distance_to(window.frontier());
  const u32 burst = std::max(1u, in_flight / kBurstShare);
  const bool was_burst = event_losses_ > burst;
  event_losses_ += psns;
  if (!was_burst && event_losses_ > burst) on_loss();
}

}  // namespace verbena
