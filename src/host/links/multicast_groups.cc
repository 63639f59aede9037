#include "host/links/multicast_groups.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace verbena::host {
namespace {

constexpr std::size_t kReadyAtOnce = 16;  // sockets looked at in one receive()

tl::unexpected<Error> refused(const GID& group) {
  return failure(errno, "cannot join the group " + group.to_string() + ": " + std::strerror(errno));
}

}  // namespace

Expected<void> MulticastGroups::open() {
  poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll_.is_open())
    return failure(errno, std::string("cannot open an epoll instance: ") + std::strerror(errno));
  return {};
}

void MulticastGroups::close() {
  receivers_.clear();
  poll_.reset();
}

Expected<void> MulticastGroups::join(const GID& group, u32 interface_index) {
  Expected<DatagramReceiver> receiver = DatagramReceiver::open(group, interface_index);
  if (!receiver) return tl::unexpected(receiver.error());
  if (Expected<void> joined = receiver->join_group(); !joined) return joined;
  epoll_event event{.events = EPOLLIN, .data = {.fd = receiver->fd()}};
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, receiver->fd(), &event) != 0) return refused(group);
  receivers_.push_back(std::move(*receiver));
  return {};
}

void MulticastGroups::leave(const GID& group) {
  std::erase_if(receivers_, [&](const DatagramReceiver& r) { return r.address() == group; });
}

bool MulticastGroups::receive(LinkCounters& counters) {
  if (receivers_.empty()) return false;
  std::array<epoll_event, kReadyAtOnce> events;
  const int ready = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool any = false;
  for (int i = 0; i < ready; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    const auto receiver = std::ranges::find(receivers_, fd, &DatagramReceiver::fd);
    if (receiver != receivers_.end()) any |= receiver->receive(counters);
  }
  return any;
}

bool MulticastGroups::poll_frame(IngressFrame& out) {
  return std::ranges::any_of(receivers_, [&out](DatagramReceiver& r) { return r.poll_frame(out); });
}

}  // namespace verbena::host
