// CoreContention: whether others want the core of a thread that looks for work in a loop. The
// thread offers its core (sched_yield) between looks. Where another thread takes it, the loop has
// the core back only after a time slice, while a thread that sleeps is woken at once: the loop
// should sleep instead. It is tried again after a rest, which doubles as long as the core is taken
// each time.
//
// Pure logic: no thread, no clock. Not thread-safe.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace verbena::host {

class CoreContention {
 public:
  static constexpr Duration kTaken = us(500);  // away for longer: another thread ran
  static constexpr Duration kMinRest = ms(10), kMaxRest = sec(1);

  // The thread offered its core at `before` and has it back at `now`.
  void on_core_returned(Time before, Time now) {
    if (now - before < kTaken) return;
    rest_ = now < wanted_until_ + kMaxRest ? std::min(rest_ * 2, kMaxRest) : kMinRest;
    wanted_until_ = now + rest_;
  }
  [[nodiscard]] bool is_core_wanted(Time now) const { return now < wanted_until_; }

 private:
  Time wanted_until_;
  Duration rest_ = kMinRest;
};

}  // namespace verbena::host
