#include "congestion/tcp/reno.h"

namespace verbena::tcp {

// RFC 5681, 3.1, by bytes: grows by a segment for each acknowledged window.
void Reno::on_acknowledged(u64 bytes, Time) {
  if (state_.in_slow_start()) bytes = state_.slow_start(bytes);
  if (state_.in_slow_start()) return;
  acknowledged_ += bytes;
  while (acknowledged_ >= state_.window) {
    acknowledged_ -= state_.window;
    state_.window += state_.mss;
  }
}

// Equation 4 of RFC 5681.
void Reno::on_congestion(u64 in_flight, Time) {
  state_.threshold = state_.at_least_two(static_cast<double>(in_flight) / 2);
  state_.window = state_.threshold;
  acknowledged_ = 0;
}

void Reno::on_timeout(u64 in_flight, Time now) {
  on_congestion(in_flight, now);
  state_.restart();
}

}  // namespace verbena::tcp
