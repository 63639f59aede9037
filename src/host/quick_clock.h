// QuickClock: the live driver's clock for one adapter, whose calls follow each other closely. To
// read the kernel's takes as long as fifty instructions or more, so what was read a moment ago
// stands for now. The processor's counter says how long a moment is: it is known to be steady, not
// how fast it counts, but no x86 processor counts below 1 GHz. On others the kernel's clock is read
// each time. Never goes back. Not thread-safe.
#pragma once

#include "base/types.h"
#include "host/clock.h"

namespace verbena::host {

class QuickClock {
 public:
  // Late by a microsecond at most.
  Time now() {
    const u64 ticks = counter();
    if (is_steady_ && ticks - ticks_ < kMoment) return last_;
    ticks_ = ticks;
    return last_ = monotonic_now();
  }
  Time exactly_now() {
    ticks_ = counter();
    return last_ = monotonic_now();
  }
  // As it was read last.
  [[nodiscard]] Time last() const { return last_; }

 private:
  static constexpr u64 kMoment = 1000;  // ticks

#if defined(__x86_64__)
  static u64 counter() { return __builtin_ia32_rdtsc(); }
#else
  static u64 counter() { return 0; }
#endif
  [[nodiscard]] static bool has_steady_counter();

  const bool is_steady_ = has_steady_counter();
  u64 ticks_ = 0;
  Time last_;
};

}  // namespace verbena::host
