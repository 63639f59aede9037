// Reno: TCP's first congestion control, and the measure of the others. RFC 5681, 3.1: slow start
// and congestion avoidance; a loss halves the window.
// Units: bytes. `in_flight`: bytes sent that are neither acknowledged nor considered lost.
#pragma once

#include "base/time.h"
#include "congestion/tcp/window_state.h"

namespace verbena::tcp {

class Reno {
 public:
  explicit Reno(const WindowState& state) : state_(state) {}

  // So many bytes were acknowledged, and the window was the sender's limit.
  void on_acknowledged(u64 bytes, Time now);
  // A loss, or an echo of congestion: once in a window.
  void on_congestion(u64 in_flight, Time now);
  void on_timeout(u64 in_flight, Time now);
  [[nodiscard]] const WindowState& state() const { return state_; }

 private:
  WindowState state_;
  u64 acknowledged_ = 0;  // since the window last grew, in congestion avoidance
};

}  // namespace verbena::tcp
