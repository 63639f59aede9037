#include "host/os/signal_actions.h"

#include <signal.h>

namespace verbena::host {
namespace {

// A thread gets these for an instruction of its own, not while it sleeps in the kernel.
bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
         signal == SIGTRAP;
}

bool interrupts_calls(int signal) {
  struct sigaction action {};
  if (::sigaction(signal, nullptr, &action) != 0) return false;  // the C library's own
  const bool is_handled = (action.sa_flags & SA_SIGINFO) != 0 ||
                          (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
  return is_handled && (action.sa_flags & SA_RESTART) == 0;
}

}  // namespace

bool some_handler_interrupts_calls() {
  for (int signal = 1; signal < NSIG; ++signal)
    if (!is_fault(signal) && interrupts_calls(signal)) return true;
  return false;
}

}  // namespace verbena::host
