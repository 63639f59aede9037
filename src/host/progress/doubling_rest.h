// DoublingRest: a rest after something that did not pay, before it is tried again. Each rest that
// follows soon after another is twice as long.
//
// Pure logic: no thread, no clock. Not thread-safe.
#pragma once

#include <algorithm>

#include "base/time.h"

namespace verbena::host {

class DoublingRest {
 public:
  static constexpr Duration kMin = ms(10), kMax = sec(1);

  void begin(Time now) {
    duration_ = now < until_ + kMax ? std::min(duration_ * 2, kMax) : kMin;
    until_ = now + duration_;
  }
  [[nodiscard]] bool lasts(Time now) const { return now < until_; }

 private:
  Time until_;
  Duration duration_ = kMin;
};

}  // namespace verbena::host
