// touch(): access to memory of the application that may have gone: unmapped since it was
// registered, a hole in a region that is paged on demand, a file that was cut short. No check made
// beforehand can exclude that (another thread may unmap in between), so the access itself may
// fault, and the thread then goes on here.
//
// The driver makes a fault reach recover_from_fault(): host/memory_faults.h. Without one, as in a
// simulation, a fault ends the program as it always did. Costs a few nanoseconds: no system call,
// no lock.
#pragma once

#include "memory/sge.h"

namespace verbena {

// What the last access of this thread met that touch() returned false for. For explanations.
struct TouchFault {
  const u8* at = nullptr;
  bool is_protected = false;  // something is mapped there; else nothing is
};
// A signal handler writes it: nothing lazy.
extern thread_local constinit TouchFault last_touch_fault
    __attribute__((tls_model("initial-exec")));

// A place to go on at: what __builtin_setjmp fills. The compiler's own, since no layer as high as
// this one has signals, and it saves three words only.
using RecoveryPoint = void* [5];

// Where this thread goes on when it faults; nullptr: not inside touch().
extern thread_local constinit RecoveryPoint* fault_recovery
    __attribute__((tls_model("initial-exec")));  // a signal handler reads it: nothing lazy

// Makes touch() return false. In a thread that has faulted inside of it, and on its stack.
[[noreturn]] void recover_from_fault();

// false: some byte could not be accessed; those before it may have been. `access` takes no lock,
// allocates nothing, has nothing to destroy and does not nest: the fault leaves it where it is.
[[nodiscard]] bool touch(void (*access)(const void* object), const void* object);
template <typename Access>
[[nodiscard]] bool touch(const Access& access) {
  return touch([](const void* object) { (*static_cast<const Access*>(object))(); }, &access);
}

// Whether every page of these bytes can be read now.
[[nodiscard]] bool is_readable(Bytes bytes);

}  // namespace verbena
