// StopDescriptor: readable after SIGTERM, SIGINT or SIGHUP. Made before other threads, so that
// they inherit the mask.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/types.h"

namespace verbena::nvmf_program {

class StopDescriptor {
 public:
  StopDescriptor() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
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

}  // namespace verbena::nvmf_program
