// What the algorithms have in common: each is an Algorithm that hides the functions below which it
// has an opinion on. CongestionControl calls them by name, not through a table.
#pragma once

#include "congestion/signals.h"

namespace verbena {

inline constexpr u64 kNoWindow = ~u64{0};

struct Algorithm {
  static constexpr bool kWantsAcks = false;  // and losses
  // A packet that waits for its time goes by the rate of now, not by that of when its wait began.
  static constexpr bool kMovesWaits = false;

  void on_cnp(Time) {}
  void on_ack(const AckSignal&, Time) {}
  void on_nak(Time) {}
  void on_timeout(Time) {}
  void on_sent(u64 /*octets*/, Time) {}
  // Octets of payload that may be in flight.
  [[nodiscard]] u64 window(Time) { return kNoWindow; }
  // What it has heard makes the rate fall later, not yet.
  [[nodiscard]] bool will_slow_down() const { return false; }
  // What rate() is on its way to, and how much of the network is taken to be congested (0 .. 1).
  [[nodiscard]] Rate target(Time) { return Rate::unlimited(); }
  [[nodiscard]] double alpha(Time) { return 0; }
};

}  // namespace verbena
