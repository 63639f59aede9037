// Signal actions of this process: sigaction(2). Kernel calls like poll(2) return EINTR after each
// handler, and calls like read(2) only after a handler without SA_RESTART (signal(7)).
#pragma once

namespace verbena::host {

// Returns true if a signal that is no fault has a handler without SA_RESTART. Some 60 system calls.
[[nodiscard]] bool some_handler_interrupts_calls();

}  // namespace verbena::host
