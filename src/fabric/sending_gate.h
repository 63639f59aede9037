// SendingGate: what holds the frames of a simulated host back besides its link: the rate of its
// virtual function, and the engine that encrypts. Both work while the link sends; the gate says
// when the next frame may leave.
#pragma once

#include <algorithm>

#include "base/rate.h"
#include "base/time.h"

namespace verbena::fabric {

// A virtual function's maximum rate: a token bucket of frames as links count them.
struct FunctionConfig {
  Rate rate = Rate::unlimited();
  u32 burst_bytes = 64 << 10;  // sent at the link's rate after a pause
};

// The cost of encrypting a frame: time of the engine, and bytes on the wire.
struct EncryptionConfig {
  u16 overhead_bytes = 0;         // on each frame; 0: nothing is encrypted
  Duration packet{};              // of each frame,
  Rate rate = Rate::unlimited();  // and of its bytes
  [[nodiscard]] bool takes_time() const {
    return packet != Duration() || rate != Rate::unlimited();
  }
};

class SendingGate {
 public:
  SendingGate(const FunctionConfig& function, const EncryptionConfig& encryption)
      : function_(function),
        encryption_(encryption),
        burst_(is_shaped() ? function.rate.time_of(function.burst_bytes) : Duration()),
        holds_(is_shaped() || encryption.takes_time()) {}

  [[nodiscard]] Time next() const { return next_; }  // Time(): always
  void on_sent(u32 bytes, Time now) {
    if (holds_) [[unlikely]]
      hold(bytes, now);
  }

 private:
  [[nodiscard]] bool is_shaped() const { return function_.rate != Rate::unlimited(); }
  // The bucket is empty when the rate would need until `earned_` for all that was sent.
  void hold(u32 bytes, Time now) {
    if (is_shaped()) {
      earned_ = std::max(earned_, now) + function_.rate.time_of(bytes);
      next_ = earned_ - now > burst_ ? earned_ - burst_ : now;
    }
    if (!encryption_.takes_time()) return;
    const Duration by_bytes =
        encryption_.rate == Rate::unlimited() ? Duration() : encryption_.rate.time_of(bytes);
    engine_ = std::max(engine_, now) + encryption_.packet + by_bytes;
    next_ = std::max(is_shaped() ? next_ : now, engine_);
  }

  FunctionConfig function_;
  EncryptionConfig encryption_;
  Duration burst_;
  bool holds_;
  Time next_, earned_, engine_;
};

}  // namespace verbena::fabric
