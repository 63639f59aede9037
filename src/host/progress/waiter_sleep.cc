#include "host/progress/waiter_sleep.h"

#include <cerrno>

#include "host/os/signal_actions.h"

namespace verbena::host {

WaiterSleep::WaiterSleep(std::span<const int> link) {
  descriptors_.push_back({.fd = -1, .events = POLLIN, .revents = 0});
  for (const int fd : link) descriptors_.push_back({.fd = fd, .events = POLLIN, .revents = 0});
}

Woken WaiterSleep::sleep(int event) {
  descriptors_.front().fd = event;
  for (;;) {
    const int ready = ::poll(descriptors_.data(), descriptors_.size(), -1);
    const bool is_interrupted = ready < 0 && errno == EINTR;
    if (is_interrupted && some_handler_interrupts_calls()) return Woken::kBySignal;
    if (is_interrupted) continue;
    return ready < 0 || descriptors_.front().revents != 0 ? Woken::kByEvent : Woken::kByLink;
  }
}

}  // namespace verbena::host
