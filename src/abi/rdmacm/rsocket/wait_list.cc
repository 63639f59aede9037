// repoll_create, repoll_ctl, repoll_wait: a kept list of what rpoll() waits for. Level-triggered:
// EPOLLET gives more events than asked for, never fewer.
#include "abi/rdmacm/rsocket/wait_list.h"

#include <rdma/rsocket.h>
#include <sys/eventfd.h>

#include <chrono>

#include "abi/rdmacm/results.h"

namespace verbena::rdmacm::rsocket {

Table<WaitList>& wait_lists() {
  static auto* const table = new Table<WaitList>;
  return *table;
}

int WaitList::change(int operation, int fd, const epoll_event* event) {
  const std::lock_guard lock(mutex_);
  const bool is_known = entries_.contains(fd);
  if (operation != EPOLL_CTL_ADD && operation != EPOLL_CTL_MOD && operation != EPOLL_CTL_DEL)
    return fail(EINVAL);
  if (operation != EPOLL_CTL_DEL && event == nullptr) return fail(EFAULT);
  if (is_known && operation == EPOLL_CTL_ADD) return fail(EEXIST);
  if (!is_known && operation != EPOLL_CTL_ADD) return fail(ENOENT);
  if (operation == EPOLL_CTL_DEL)
    entries_.erase(fd);
  else
    entries_[fd] = *event;
  (void)eventfd_write(changed_.get(), 1);
  return 0;
}

std::vector<pollfd> WaitList::asked() {
  constexpr unsigned kEvents = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP;  // as poll() has them
  const std::lock_guard lock(mutex_);
  std::vector<pollfd> asked{{.fd = changed_.get(), .events = POLLIN, .revents = 0}};
  for (const auto& [fd, event] : entries_)
    if (event.events != 0)  // EPOLLONESHOT has had its one
      asked.push_back(
          {.fd = fd, .events = static_cast<short>(event.events & kEvents), .revents = 0});
  return asked;
}

void WaitList::on_change_seen() {
  eventfd_t ignored = 0;
  (void)eventfd_read(changed_.get(), &ignored);
}

int WaitList::report(std::span<const pollfd> polled, std::span<epoll_event> to) {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const pollfd& one : polled) {
    const auto entry = entries_.find(one.fd);
    if (one.revents == 0 || count == to.size() || entry == entries_.end()) continue;
    epoll_event& event = entry->second;
    to[count++] = {.events = static_cast<std::uint16_t>(one.revents), .data = event.data};
    if ((event.events & EPOLLONESHOT) != 0) event.events = 0;
  }
  return static_cast<int>(count);
}

namespace {

using Clock = std::chrono::steady_clock;

// The count of events; 0: time is up.
int wait_for(WaitList& list, std::span<epoll_event> events, int timeout_ms) {
  const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    std::vector<pollfd> asked = list.asked();
    const int ready = rpoll(asked.data(), asked.size(), timeout_ms);
    if (ready < 0) return -1;
    if (asked.front().revents != 0) list.on_change_seen();
    if (const int count = list.report(std::span(asked).subspan(1), events); count != 0)
      return count;
    if (timeout_ms < 0) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return 0;
    timeout_ms = static_cast<int>(left);
  }
}

}  // namespace
}  // namespace verbena::rdmacm::rsocket

using namespace verbena::rdmacm;
using namespace verbena::rdmacm::rsocket;

extern "C" {

// Declared by newer headers than Debian 12's.
int repoll_create(int flags);
int repoll_ctl(int poll, int operation, int descriptor, epoll_event* event);
int repoll_wait(int poll, epoll_event* events, int max_events, int timeout_ms);

int repoll_create(int flags) try {
  if ((flags & ~EPOLL_CLOEXEC) != 0) return fail(EINVAL);
  verbena::host::Descriptor changed(
      eventfd(0, EFD_NONBLOCK | ((flags & EPOLL_CLOEXEC) != 0 ? EFD_CLOEXEC : 0)));
  if (!changed.is_open()) return -1;
  const auto list = std::make_shared<WaitList>(std::move(changed));
  wait_lists().add(list->fd(), list);
  return list->fd();
} catch (...) {
  return fail(errno_of_exception());
}

int repoll_ctl(int poll, int operation, int descriptor, epoll_event* event) try {
  if (descriptor < 0) return fail(EBADF);
  if (poll == descriptor) return fail(EINVAL);
  const auto list = wait_lists().find(poll);
  return list ? list->change(operation, descriptor, event) : fail(EBADF);
} catch (...) {
  return fail(errno_of_exception());
}

int repoll_wait(int poll, epoll_event* events, int max_events, int timeout_ms) try {
  const auto list = wait_lists().find(poll);
  if (!list) return fail(EBADF);
  if (max_events <= 0 || events == nullptr) return fail(EINVAL);
  return wait_for(*list, std::span(events, static_cast<std::size_t>(max_events)), timeout_ms);
} catch (...) {
  return fail(errno_of_exception());
}

}  // extern "C"
