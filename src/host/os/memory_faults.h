// A handler of SIGSEGV and SIGBUS that turns a fault inside touch() (memory/touch.h) into its
// `false`.
//
// A library that takes signals in someone's program must be polite. This one acts only on a fault
// of a thread that is inside touch(), or that met memory being replaced
// (local/replaced_memory.h). All else goes where it would have gone without it: to the
// handler that was there before, with its mask and flags, or to the system's default action, at the
// instruction that faulted. It is installed once, when the first device is opened, and never again:
// an application that sets a handler later replaces it, and then has what any program has whose
// memory is not there. So has a thread that blocks these signals: the kernel ends the process.
#pragma once

namespace verbena::host {

void survive_memory_faults();  // idempotent; thread-safe

}  // namespace verbena::host
