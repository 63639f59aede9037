// CoreContention: whether others want the core of a thread that looks for work in a loop. The
// thread offers its core (sched_yield) between looks. Where another thread takes it, the loop has
// the core back only after a time slice, while a thread that sleeps is woken at once: the loop
// should sleep instead, and offer again after a rest.
//
// Pure logic: no thread, no clock. Not thread-safe.
#pragma once

#include "host/progress/doubling_rest.h"

namespace verbena::host {

class CoreContention {
 public:
  static constexpr Duration kTaken = us(500);

  // The thread offered its core at `before` and has it back at `now`. Away for as long as `taken`:
  // a stranger ran.
  void on_core_returned(Time before, Time now, Duration taken = kTaken) {
    if (now - before >= taken) rest_.begin(now);
  }
  [[nodiscard]] bool is_core_wanted(Time now) const { return rest_.lasts(now); }

 private:
  DoublingRest rest_;
};

}  // namespace verbena::host
