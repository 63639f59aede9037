// LateGate: our gate at a peer (transport/local/access_gates.h) for copies that end late. It is
// open while any of them runs. Copies end in a thread of a driver, so this is thread-safe.
#pragma once

#include <mutex>

#include "transport/local/access_gates.h"

namespace verbena::host {

class LateGate {
 public:
  LateGate(AccessGates& gates, u32 gate) : gates_(gates), gate_(gate) {}

  // Returns false if the peer has withdrawn something since the gate was opened. The gate must
  // close first, because the peer waits for that.
  [[nodiscard]] bool enter() {
    const std::lock_guard lock(mutex_);
    if (inside_ == 0)
      open();
    else if (gates_.withdrawals() != withdrawals_)
      return false;
    ++inside_;
    return true;
  }
  // A peer that was not patient has closed the gate already.
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0 && AccessGates::is_open(gates_.look(gate_))) gates_.pass_out(gate_);
  }

 private:
  // A process that had our slot before may have ended inside.
  void open() {
    gates_.come();
    if (AccessGates::is_open(gates_.look(gate_))) gates_.shut(gate_);
    withdrawals_ = gates_.pass_in(gate_);
  }

  AccessGates& gates_;
  const u32 gate_;
  std::mutex mutex_;
  u32 inside_ = 0;
  u64 withdrawals_ = 0;  // of the peer, when the gate was opened
};

}  // namespace verbena::host
