// A thread's time slice: how long it runs before the kernel looks whether others should. Since
// Linux 6.12 a thread may choose its own. One that wakes with a shorter slice than that of the
// thread that runs takes the core at once, while with the same slice it waits for the other's end,
// 1.4 ms on two cores. And to offer the core (sched_yield) costs a thread the rest of its slice.
// So threads that receive should have short ones, and threads that compute long ones.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include "base/time.h"
#include "base/types.h"

namespace verbena::host {

inline constexpr Duration kShortTimeSlice = us(100);  // the shortest that the kernel gives

// The first fields of the kernel's struct sched_attr (sched_setattr(2)), which is not in all C
// libraries.
struct SchedulingAttributes {
  u32 size = sizeof(SchedulingAttributes);
  u32 policy = 0;
  u64 flags = 0;
  i32 nice = 0;
  u32 priority = 0;
  u64 runtime_ns = 0;  // the slice; 0: the kernel's own
  u64 deadline_ns = 0, period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);  // SCHED_ATTR_SIZE_VER0

// Sets the slice of the calling thread and of the threads that it starts later. Duration() restores
// the kernel's default. Does nothing before Linux 6.12, or if the policy is not SCHED_OTHER.
inline void set_time_slice(Duration slice) {
  constexpr u32 kOrdinary = 0;  // SCHED_OTHER
  SchedulingAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != kOrdinary) return;
  attributes.size = sizeof(attributes);
  attributes.runtime_ns = static_cast<u64>(slice.ns());
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace verbena::host
