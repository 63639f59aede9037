// Keepalive: when a connection that says nothing is to be tried: SO_KEEPALIVE, TCP_KEEPIDLE.
// Looked at whenever a call waits or polls; a program in no call of ours sends none.
#pragma once

#include <chrono>

namespace verbena::rdmacm::rsocket {

class Keepalive {
 public:
  using Clock = std::chrono::steady_clock;

  void turn(bool on) {
    is_on_ = on;
    next_ = Clock::now() + idle_;
  }
  void set_idle(std::chrono::seconds idle) {
    idle_ = idle;
    next_ = Clock::now() + idle_;
  }
  [[nodiscard]] bool is_on() const { return is_on_; }
  [[nodiscard]] std::chrono::seconds idle() const { return idle_; }

  // Returns true if the caller must send a keepalive now.
  [[nodiscard]] bool is_due() {
    if (!is_on_) return false;
    const Clock::time_point now = Clock::now();
    if (now < next_) return false;
    next_ = now + idle_;
    return true;
  }

 private:
  bool is_on_ = false;
  std::chrono::seconds idle_{7200};  // as Linux's tcp_keepalive_time
  Clock::time_point next_;
};

}  // namespace verbena::rdmacm::rsocket
