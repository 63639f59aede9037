// The common interface of the algorithms. Each is an Algorithm that hides those functions below
// which it implements. CongestionControl calls them by name, not through a table.
#pragma once

#include "congestion/signals.h"

namespace verbena {

inline constexpr u64 kNoWindow = ~u64{0};

struct Algorithm {
  static constexpr bool kWantsAcks = false;  // and losses
  // A packet that waits for its time follows the current rate, not the rate at which its wait
  // began.
  static constexpr bool kMovesWaits = false;

  void on_cnp(Time) {}
  void on_ack(const AckSignal&, Time) {}
  void on_nak(Time) {}
  void on_timeout(Time) {}
  void on_sent(u64 /*bytes*/, Time) {}
  // Returns the number of payload bytes that may be in flight.
  [[nodiscard]] u64 window(Time) { return kNoWindow; }
  // Returns true if the signals so far lower the rate later, not yet.
  [[nodiscard]] bool will_slow_down() const { return false; }
  // target(): the rate that rate() approaches. alpha(): the estimated extent of congestion (0 ..
  // 1).
  [[nodiscard]] Rate target(Time) { return Rate::unlimited(); }
  [[nodiscard]] double alpha(Time) { return 0; }
};

}  // namespace verbena
