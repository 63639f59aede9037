// CUBIC: the window as a cubic function of the time since the last loss, so that it returns quickly
// to its size at the loss, stays there, and then probes for more. RFC 9438. With t in seconds and
// windows in segments (4.2):
//   W_cubic(t) = C * (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)
// It is never smaller than Reno's would be by then (4.3, W_est). A loss reduces it to 0.7 of its
// size (4.6); a window that has shrunk since the loss before gives up more (4.7, fast convergence).
#pragma once

#include <optional>

#include "base/time.h"
#include "congestion/tcp/window_state.h"

namespace verbena::tcp {

class CUBIC {
 public:
  static constexpr double kC = 0.4;     // segments per second cubed. RFC 9438, 5
  static constexpr double kBeta = 0.7;  // 4.6

  explicit CUBIC(const WindowState& state) : state_(state) {}

  // As Reno's. `round_trip`: smoothed.
  void on_acknowledged(u64 bytes, Duration round_trip, Time now);
  void on_congestion(u64 in_flight, Time now);
  void on_timeout(u64 in_flight, Time now);
  [[nodiscard]] const WindowState& state() const { return state_; }
  // Returns the function's value in segments. Precondition: congestion avoidance has begun.
  [[nodiscard]] double at(double seconds_of_epoch) const;

 private:
  [[nodiscard]] double segments() const { return window_ / state_.mss; }
  void begin_epoch(Time now);
  void set_window(double bytes);
  void shrink(u64 in_flight);

  WindowState state_;
  double window_ = static_cast<double>(state_.window);  // with fractions of a byte
  double w_max_ = 0;                                    // segments
  double k_ = 0;                                        // seconds
  double w_est_ = 0;                                    // segments
  double before_ = 0;                                   // the last loss: cwnd_prior, segments
  std::optional<Time> epoch_;                           // begin of congestion avoidance
};

}  // namespace verbena::tcp
