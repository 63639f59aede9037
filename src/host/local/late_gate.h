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
    else if (gates_.withdrawals() != entry_.withdrawals)
      return false;
    ++inside_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) gates_.pass_out(gate_, entry_.look);
  }

 private:
  // A process that had our slot before may have ended inside.
  void open() {
    gates_.come();
    gates_.shut(gate_);
    entry_ = gates_.pass_in(gate_);
  }

  AccessGates& gates_;
  const u32 gate_;
  std::mutex mutex_;
  u32 inside_ = 0;
  AccessGates::Entry entry_{};  // of the first inside
};

}  // namespace verbena::host
