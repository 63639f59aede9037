// Reno: TCP's first congestion control, and what others are held against. RFC 5681, 3.1: slow start
// and congestion avoidance, the window half as large after a loss.
// Units: octets. `in_flight`: what is sent and neither acknowledged nor taken for lost.
#pragma once

#include "base/time.h"
#include "congestion/tcp/window_state.h"

namespace verbena::tcp {

class Reno {
 public:
  explicit Reno(const WindowState& state) : state_(state) {}

  // So many octets were acknowledged, and the window had been what held the sender back.
  void on_acknowledged(u64 octets, Time now);
  // A loss, or an echo of congestion: once in a window.
  void on_congestion(u64 in_flight, Time now);
  void on_timeout(u64 in_flight, Time now);
  [[nodiscard]] const WindowState& state() const { return state_; }

 private:
  WindowState state_;
  u64 acknowledged_ = 0;  // since the window grew last, in congestion avoidance
};

}  // namespace verbena::tcp
