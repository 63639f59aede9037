#include "host/events/event_descriptor.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace verbena::host {

Expected<EventDescriptor> EventDescriptor::open() {
  Descriptor fd(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  if (!fd.is_open())
    return failure(errno, std::string("cannot create an eventfd: ") + std::strerror(errno));
  return EventDescriptor(std::move(fd));
}

// Blocks only at a count of 2^64 - 2.
void EventDescriptor::add() {
  const u64 one = 1;
  (void)!::write(fd_.get(), &one, sizeof(one));
}

bool EventDescriptor::blocks() const {
  const int flags = ::fcntl(fd_.get(), F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

int EventDescriptor::take() {
  u64 value = 0;
  return ::read(fd_.get(), &value, sizeof(value)) == sizeof(value) ? 0 : errno;
}

// Before Linux 5.8 an eventfd has no RWF_NOWAIT: then the descriptor is readable once too often,
// and EventQueue::pop() copes with that.
void EventDescriptor::try_take() {
  u64 value = 0;
  const iovec iov{.iov_base = &value, .iov_len = sizeof(value)};
  (void)!::preadv2(fd_.get(), &iov, 1, -1, RWF_NOWAIT);
}

}  // namespace verbena::host
