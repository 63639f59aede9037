#include "host/os/memory_faults.h"

#include <signal.h>
#include <ucontext.h>

#include <mutex>

#include "base/types.h"
#include "host/local/replaced_memory.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

static_assert(sizeof(greg_t) == 8, "the x86-64 context");

constexpr greg_t kRedZone = 128;          // below the stack pointer: not ours. System V ABI, 3.2.2
constexpr greg_t kDirectionFlag = 0x400;  // of EFLAGS: clear at every call

struct sigaction previous_segv, previous_bus;

// The handler returns into recover_from_fault(), as if the faulting code had called it: so the
// kernel puts back the signal mask and the floating point state.
void resume_in_recovery(ucontext_t& context) {
  greg_t* const registers = context.uc_mcontext.gregs;
  const greg_t stack = (registers[REG_RSP] - kRedZone) & ~greg_t{15};
  registers[REG_RSP] = stack - greg_t{sizeof(void*)};  // where a return address would be
  registers[REG_RIP] = reinterpret_cast<greg_t>(&recover_from_fault);
  registers[REG_EFL] &= ~kDirectionFlag;
}

// The kernel does it when the instruction faults again; a signal that was sent is sent again.
void leave_to_default_action(int signal, const siginfo_t& info) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  if (info.si_code <= 0) ::raise(signal);
}

void call(const struct sigaction& handler, int signal, siginfo_t* info, void* context) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, &handler.sa_mask, &mask);
  if ((handler.sa_flags & SA_SIGINFO) != 0)
    handler.sa_sigaction(signal, info, context);
  else
    handler.sa_handler(signal);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  struct sigaction& previous = signal == SIGSEGV ? previous_segv : previous_bus;
  const bool was_sent = info->si_code <= 0;
  const bool has_handler = (previous.sa_flags & SA_SIGINFO) != 0 ||
                           (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
  if (!has_handler) {
    const bool ignored = previous.sa_handler == SIG_IGN && was_sent;
    if (!ignored) leave_to_default_action(signal, *info);
    return;
  }
  const struct sigaction handler = previous;
  if ((handler.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    previous.sa_flags = 0;
    previous.sa_handler = SIG_DFL;
  }
  call(handler, signal, info, context);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const bool by_an_access = info->si_code > 0;
  if (by_an_access && may_retry_after_replacement(reinterpret_cast<u64>(info->si_addr))) return;
  if (!by_an_access || fault_recovery == nullptr) return pass_on(signal, info, context);
  last_touch_fault = {.at = static_cast<const u8*>(info->si_addr),
                      .is_protected = signal == SIGSEGV && info->si_code != SEGV_MAPERR};
  resume_in_recovery(*static_cast<ucontext_t*>(context));
}

// SA_NODEFER where the previous handler had it; on its alternate stack, where a thread has one.
void install(int signal, struct sigaction& previous) {
  ::sigaction(signal, nullptr, &previous);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (previous.sa_flags & (SA_NODEFER | SA_RESTART));
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void survive_memory_faults() {
  static std::once_flag installed;
  std::call_once(installed, [] {
    install(SIGSEGV, previous_segv);
    install(SIGBUS, previous_bus);
  });
}

}  // namespace verbena::host
