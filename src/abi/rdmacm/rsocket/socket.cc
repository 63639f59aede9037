#include "abi/rdmacm/rsocket/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

namespace verbena::rdmacm::rsocket {

int Socket::control(int command, int argument) {
  const Lock lock(mutex_);
  switch (command) {
    case F_GETFL: return O_RDWR | file_flags_;
    case F_SETFL: file_flags_ = argument & O_NONBLOCK; return 0;
    case F_GETFD: return fcntl(fd(), F_GETFD);
    case F_SETFD: return fcntl(fd(), F_SETFD, argument);
    default: return fail(EINVAL);
  }
}

bool Socket::is_nonblocking(int flags) const {
  return (file_flags_ & O_NONBLOCK) != 0 || (flags & MSG_DONTWAIT) != 0;
}

// --- waiting

short Socket::ready(short events) {
  const Lock lock(mutex_);
  const int before = errno;
  look();
  errno = before;
  return ready_now(events);
}

void Socket::serve() {
  const Lock lock(mutex_);
  look();
}

void Socket::begin_sleep(std::vector<pollfd>& to) {
  const Lock lock(mutex_);
  register_sleep(to);
}

void Socket::end_sleep() {
  const Lock lock(mutex_);
  unregister_sleep();
}

void Socket::register_sleep(std::vector<pollfd>& to) {
  ++sleepers_;
  to.push_back({.fd = wake_.get(), .events = POLLIN, .revents = 0});
  arm(to);
}

// drain() takes the notification from all threads that sleep on it. So they are woken, look too,
// and arm again. The wake-up stays set until the last of them is awake.
void Socket::unregister_sleep() {
  --sleepers_;
  if (drain()) wake_all();
  eventfd_t ignored = 0;
  if (sleepers_ == 0) (void)eventfd_read(wake_.get(), &ignored);
}

void Socket::wake_all() {
  if (sleepers_ != 0) (void)eventfd_write(wake_.get(), 1);
}

int Socket::sleep(Lock& lock, std::span<pollfd> on, Clock::time_point until) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
  const milliseconds limit = std::clamp(left, milliseconds(0), defaults().longest_sleep);
  lock.unlock();
  const int result = ::poll(on.data(), on.size(), static_cast<int>(limit.count()));
  const int error = result < 0 ? errno : 0;
  lock.lock();
  return error;
}

// --- values

bool is_whole(const sockaddr* address, socklen_t length) {
  if (address == nullptr || length < sizeof(sockaddr)) return false;
  return address->sa_family != AF_INET6 || length >= sizeof(sockaddr_in6);
}

// A nullptr with no room only asks for the size.
int give_name(const sockaddr& name, NameBuffer to) {
  if (to.length == nullptr || (to.address == nullptr && *to.length != 0)) return fail(EFAULT);
  const socklen_t size = name.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (to.address != nullptr) std::memcpy(to.address, &name, std::min(*to.length, size));
  *to.length = size;
  return 0;
}

int give_value(const void* from, std::size_t size, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) return fail(EFAULT);
  *length = static_cast<socklen_t>(std::min<std::size_t>(*length, size));
  std::memcpy(value, from, *length);
  return 0;
}

}  // namespace verbena::rdmacm::rsocket
