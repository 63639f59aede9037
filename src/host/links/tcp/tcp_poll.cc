#include "host/links/tcp/tcp_poll.h"

#include <cerrno>
#include <cstring>

#include "host/os/message_calls.h"

namespace verbena::host {

Expected<TCPPoll> TCPPoll::open() {
  TCPPoll poll;
  poll.epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll.epoll_.is_open())
    return failure(errno, std::string("cannot make an epoll: ") + std::strerror(errno));
  return poll;
}

bool TCPPoll::watch(int socket, u32 events, ReadyTarget& target) {
  epoll_event event{.events = events, .data = {.ptr = &target}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) == 0;
}

void TCPPoll::change(int socket, u32 events, ReadyTarget& target) {
  epoll_event event{.events = events, .data = {.ptr = &target}};
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket, &event);
}

// A target that is ready in the same batch as another may go away when that one is served.
void TCPPoll::forget(int socket, const ReadyTarget& target) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  for (int i = 0; i < count_; ++i) {
    epoll_event& event = batch_[static_cast<std::size_t>(i)];
    if (event.data.ptr == &target) event.data.ptr = nullptr;
  }
}

u32 TCPPoll::serve(Time now) {
  const long ready = ready_events(epoll_.get(), batch_);
  if (ready <= 0) return 0;
  count_ = static_cast<int>(ready);
  for (int i = 0; i < count_; ++i) {
    const epoll_event& event = batch_[static_cast<std::size_t>(i)];
    if (event.data.ptr != nullptr)
      static_cast<ReadyTarget*>(event.data.ptr)->on_ready(event.events, now);
  }
  count_ = 0;
  return static_cast<u32>(ready);
}

}  // namespace verbena::host
