// touch(): access to memory of the application that may not be accessible: unmapped since its
// registration, a hole in a region that is paged on demand, a truncated file. No check beforehand
// can exclude this, because another thread may unmap in between. So the access itself may fault,
// and the thread then continues here.
//
// The driver makes a fault reach recover_from_fault(): host/os/memory_faults.h. Without a driver
// that does, as in a simulation, a fault ends the program. Costs a few nanoseconds: no system call,
// no lock.
#pragma once

#include "memory/sge.h"

namespace verbena {

// The fault of this thread's last access for which touch() returned false. For explanations.
struct TouchFault {
  const u8* at = nullptr;
  bool is_protected = false;  // something is mapped there; otherwise nothing is
};
// A signal handler writes it, so it must not be allocated lazily.
extern thread_local constinit TouchFault last_touch_fault
    __attribute__((tls_model("initial-exec")));

// A recovery point, as __builtin_setjmp fills it. The compiler's own, because no layer as low as
// this one has signals, and it saves three words only.
using RecoveryPoint = void* [5];

// The point where this thread continues when it faults; nullptr outside touch().
extern thread_local constinit RecoveryPoint* fault_recovery __attribute__((
    tls_model("initial-exec")));  // a signal handler reads it, so it must not be allocated lazily

// Makes touch() return false. To be called in a thread that has faulted inside of it, on its stack.
[[noreturn]] void recover_from_fault();

// Returns false if some byte could not be accessed; bytes before it may have been. `access` takes
// no lock, allocates nothing, has nothing to destroy and does not nest: a fault leaves it where it
// is.
[[nodiscard]] bool touch(void (*access)(const void* object), const void* object);
template <typename Access>
[[nodiscard]] bool touch(const Access& access) {
  return touch([](const void* object) { (*static_cast<const Access*>(object))(); }, &access);
}

// Returns whether every page of these bytes can be read now.
[[nodiscard]] bool is_readable(Bytes bytes);

}  // namespace verbena
