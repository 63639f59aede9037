#include "host/quick_clock.h"

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

}  // namespace verbena::host
