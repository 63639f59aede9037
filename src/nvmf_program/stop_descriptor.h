// StopDescriptor: readable after SIGTERM, SIGINT or SIGHUP. Made before other threads, so that
// they inherit the mask. SignalsEndProcess: the same signals end the process while it exists.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/types.h"

namespace verbena::nvmf_program {

[[nodiscard]] inline sigset_t stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  return signals;
}

class StopDescriptor {
 public:
  StopDescriptor() {
    const sigset_t signals = stop_signals();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    fd_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  }
  ~StopDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  StopDescriptor(const StopDescriptor&) = delete;
  StopDescriptor& operator=(const StopDescriptor&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // Takes one signal; false: none came.
  [[nodiscard]] bool take() const {
    signalfd_siginfo info{};
    return fd_ >= 0 && read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info);
  }

 private:
  int fd_ = -1;
};

// For system calls of the calling thread that block for as long as others want.
class SignalsEndProcess {
 public:
  SignalsEndProcess() : signals_(stop_signals()) {
    pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
  }
  ~SignalsEndProcess() { pthread_sigmask(SIG_BLOCK, &signals_, nullptr); }
  SignalsEndProcess(const SignalsEndProcess&) = delete;
  SignalsEndProcess& operator=(const SignalsEndProcess&) = delete;

 private:
  const sigset_t signals_;
};

}  // namespace verbena::nvmf_program
