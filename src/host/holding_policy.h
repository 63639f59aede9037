// HoldingPolicy: may a request packet wait in the link for others to go with it in one system call?
//
// One call to the kernel costs as much as building and checking some twenty small packets, and
// takes up to 64 of them. A card learns of each request by its own doorbell; here a program that
// posts many small requests one by one would pay for a call each. So a packet whose QP still waits
// for an earlier answer may be held back (EgressFrame::may_wait), if the program calls again and
// again at short intervals: until one datagram call is full, or a poll finds nothing, or a packet
// comes that must not wait. Should the program stop calling instead, the helper thread sends what
// is held after kPatience, and for some time, which doubles with each repetition, nothing is held
// back.
//
// Pure logic: no thread, no clock. Not thread-safe.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace verbena::host {

class HoldingPolicy {
 public:
  // The application called, to post or in vain to poll.
  void on_call(Time now) {
    calls_in_a_row_ = now - last_call_ <= kShort ? std::min(calls_in_a_row_ + 1, kInARow) : 0;
    last_call_ = now;
  }
  [[nodiscard]] bool may_hold(Time now) const {
    return calls_in_a_row_ >= kInARow && now >= not_before_;
  }

  void on_held(Time now) {
    if (deadline_ == Time::never()) deadline_ = now + kPatience;
  }
  void on_sent() { deadline_ = Time::never(); }
  // When what is held must go; never(): nothing is.
  [[nodiscard]] Time deadline() const { return deadline_; }
  // The helper found it still there at the deadline.
  void on_overdue(Time now) {
    rest_ = now < not_before_ + kMaxRest ? std::min(rest_ * 2, kMaxRest) : kMinRest;
    not_before_ = now + rest_;
  }

 private:
  static constexpr u32 kInARow = 16;
  static constexpr Duration kShort = us(10);
  static constexpr Duration kPatience = us(200);
  static constexpr Duration kMinRest = ms(10), kMaxRest = sec(1);

  u32 calls_in_a_row_ = 0;
  Time last_call_, not_before_;
  Duration rest_ = kMinRest;
  Time deadline_ = Time::never();
};

}  // namespace verbena::host
