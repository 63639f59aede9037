// QuickClock: the live driver's clock for one adapter, whose calls follow each other closely.
// Reading the kernel's clock takes as long as a hundred instructions or more, so between two such
// readings the processor's counter gives the time. The counter is known to be steady. Its rate is
// measured against the kernel's clock and assumed a little slower, so that the result is never
// ahead. Until the rate is known, a reading of a moment ago stands for now: no x86 processor counts
// below 1 GHz. On other processors the kernel's clock is read each time. Never goes back. Not
// thread-safe.
#pragma once

#include <algorithm>

#include "base/types.h"
#include "host/os/clock.h"

namespace verbena::host {

class QuickClock {
 public:
  // Late by a microsecond at most.
  Time now() {
    const u64 ticks = counter() - ticks_;
    if (ticks >= good_for_) return exactly_now();
    const Time now = read_ + Duration::from_ps(static_cast<i64>(ticks * rate_ >> kRateBits));
    return last_ = std::max(last_, now);  // cores' counters may differ by a little
  }
  Time exactly_now();
  // As it was told last.
  [[nodiscard]] Time last() const { return last_; }

 private:
  static constexpr u64 kMoment = 1000;                  // ticks
  static constexpr u32 kRateBits = 10;                  // of the fraction of a rate
  static constexpr u64 kSlower = 64;                    // by one part in so many
  static constexpr Duration kBetweenReadings = us(40);  // so late by 0.6 us
  static constexpr Duration kMinMeasured = ms(10), kMaxMeasured = sec(1);

#if defined(__x86_64__)
  static u64 counter() { return __builtin_ia32_rdtsc(); }
#else
  static u64 counter() { return 0; }
#endif
  [[nodiscard]] static bool has_steady_counter();
  void measure();
  [[nodiscard]] u64 ticks_of(Duration time) const {
    return (static_cast<u64>(time.ps()) << kRateBits) / rate_;
  }

  const bool is_steady_ = has_steady_counter();
  Time read_, last_;
  u64 ticks_ = 0;     // at `read_`, or a little later
  u64 rate_ = 0;      // picoseconds in a tick; 0: not known
  u64 good_for_ = 0;  // ticks from `ticks_` on
  Time measured_from_;
  u64 measured_from_ticks_ = 0;
};

}  // namespace verbena::host
