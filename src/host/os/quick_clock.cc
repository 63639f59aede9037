#include "host/os/quick_clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace verbena::host {

#if defined(__x86_64__)
// At one rate in all states, on all cores: CPUID 8000'0007h, EDX bit 8.
bool QuickClock::has_steady_counter() {
  constexpr u32 kPowerManagement = 0x80000007, kInvariantTSC = 1u << 8;
  u32 eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(kPowerManagement, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTSC) != 0;
}
#else
bool QuickClock::has_steady_counter() { return false; }
#endif

// A reading that took long says nothing about the counter.
Time QuickClock::exactly_now() {
  const u64 before = counter();
  read_ = std::max(monotonic_now(), last_);
  ticks_ = counter();
  const bool is_quick = is_steady_ && ticks_ - before < kMoment;
  if (is_quick) measure();
  good_for_ = !is_quick ? 0 : rate_ == 0 ? kMoment : ticks_of(kBetweenReadings);
  return last_ = read_;
}

// Again and again: a virtual machine may come to another processor.
void QuickClock::measure() {
  const Duration time = read_ - measured_from_;
  if (time < kMinMeasured) return;
  const u64 ticks = ticks_ - measured_from_ticks_;
  if (time <= kMaxMeasured && ticks != 0) {
    const u64 rate = (static_cast<u64>(time.ps()) << kRateBits) / ticks;
    rate_ = rate - rate / kSlower;
  }
  measured_from_ = read_;
  measured_from_ticks_ = ticks_;
}

}  // namespace verbena::host
