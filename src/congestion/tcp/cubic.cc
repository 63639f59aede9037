#include "congestion/tcp/cubic.h"

#include <cmath>

namespace verbena::tcp {

double CUBIC::at(double seconds) const {
  const double t = seconds - k_;
  return kC * t * t * t + w_max_;
}

void CUBIC::set_window(double bytes) {
  window_ = bytes;
  state_.window = static_cast<u64>(bytes);
}

// RFC 9438, 4.2. Without a loss before, the plateau is here.
void CUBIC::begin_epoch(Time now) {
  epoch_ = now;
  w_est_ = segments();
  w_max_ = std::max(w_max_, segments());
  k_ = std::cbrt((w_max_ - segments()) / kC);
}

void CUBIC::on_acknowledged(u64 bytes, Duration round_trip, Time now) {
  if (state_.in_slow_start()) {
    bytes = state_.slow_start(bytes);
    window_ = static_cast<double>(state_.window);
  }
  if (state_.in_slow_start()) return;
  if (!epoch_) begin_epoch(now);
  const double acknowledged = static_cast<double>(bytes) / state_.mss;
  // 4.3: the same average share of loss as Reno, so a slower growth, until the window has regained
  // its size.
  const double alpha = w_est_ >= before_ ? 1 : 3 * (1 - kBeta) / (1 + kBeta);
  w_est_ += alpha * acknowledged / segments();
  const double t = (now - *epoch_).seconds();
  if (at(t) < w_est_) return set_window(std::max(window_, w_est_ * state_.mss));
  const double target = std::clamp(at(t + round_trip.seconds()), segments(), 1.5 * segments());
  set_window(window_ + (target - segments()) / segments() * static_cast<double>(bytes));
}

// 4.6 and 4.7. Uses the data in flight, so that an unused window does not count.
void CUBIC::shrink(u64 in_flight) {
  epoch_.reset();
  before_ = segments();
  const bool shrinks = segments() < w_max_;
  w_max_ = shrinks ? segments() * (1 + kBeta) / 2 : segments();
  state_.threshold = state_.at_least_two(static_cast<double>(in_flight) * kBeta);
}

void CUBIC::on_congestion(u64 in_flight, Time) {
  shrink(in_flight);
  set_window(static_cast<double>(state_.threshold));
}

void CUBIC::on_timeout(u64 in_flight, Time) {
  shrink(in_flight);
  state_.restart();
  window_ = static_cast<double>(state_.window);
}

}  // namespace verbena::tcp
