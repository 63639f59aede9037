#include "host/wake_descriptor.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/types.h"

namespace verbena::host {
namespace {

bool change(const Descriptor& poll, int operation, int fd, u32 events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  return ::epoll_ctl(poll.get(), operation, fd, &event) == 0;
}

}  // namespace

Expected<WakeDescriptor> WakeDescriptor::open(int events) {
  Descriptor poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll.is_open() || !change(poll, EPOLL_CTL_ADD, events, EPOLLIN))
    return failure(errno, std::string("cannot create an epoll: ") + std::strerror(errno));
  return WakeDescriptor(std::move(poll));
}

bool WakeDescriptor::blocks() const {
  const int flags = ::fcntl(poll_.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

void WakeDescriptor::listen(int arrivals) {
  if (listens_ == Listens::kYes) return;
  const int operation = listens_ == Listens::kNever ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (change(poll_, operation, arrivals, EPOLLIN)) listens_ = Listens::kYes;
}

void WakeDescriptor::ignore(int arrivals) {
  if (listens_ != Listens::kYes) return;
  if (change(poll_, EPOLL_CTL_MOD, arrivals, 0)) listens_ = Listens::kNo;
}

}  // namespace verbena::host
