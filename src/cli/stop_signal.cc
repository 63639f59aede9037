#include "cli/stop_signal.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <climits>

namespace verbena::cli {

StopSignal::StopSignal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = host::Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool StopSignal::wait(Duration limit) const { return wait(limit, -1) == Woken::kStopped; }

StopSignal::Woken StopSignal::wait(Duration limit, int also) const {
  std::array<pollfd, 2> waiting{{{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                 {.fd = also, .events = POLLIN, .revents = 0}}};
  const i64 milliseconds = std::clamp<i64>(limit.ns() / 1'000'000, 0, INT_MAX);
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(milliseconds)) <= 0)
    return Woken::kTimeout;
  return waiting[0].revents != 0 ? Woken::kStopped : Woken::kReadable;
}

}  // namespace verbena::cli
