// The rsocket family: from descriptors to Sockets. rsocket(7).
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <climits>
#include <cstdarg>

#include "abi/ibverbs/exceptions.h"
#include "abi/rdmacm/device_table.h"
#include "abi/rdmacm/rsocket/datagram_socket.h"
#include "abi/rdmacm/rsocket/interposing.h"
#include "abi/rdmacm/rsocket/stream_socket.h"
#include "abi/rdmacm/rsocket/table.h"
#include "abi/rdmacm/rsocket/wait_list.h"
#include "base/checked.h"

namespace verbena::rdmacm::rsocket {

Table<Socket>& sockets() {
  static auto* const table = new Table<Socket>;
  return *table;
}

namespace {

constexpr int kTypeFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

// Returns the result of the call for the rsocket of that descriptor. Changes errno on failures
// only: programs look at it after an end of data, too.
template <typename Call>
auto with(int fd, Call call) -> decltype(call(std::declval<Socket&>())) {
  auto socket = sockets().find(fd);
  if (socket == nullptr) return fail(EBADF);
  const int before = errno;
  const auto result = call(*socket);
  const int after = result >= 0 ? before : errno;
  socket.reset();  // closed meanwhile by another thread: this is its end
  errno = after;
  return result;
}

int enter(const Socket::Made& made) {
  if (made == nullptr) return -1;
  sockets().add(made->fd(), made);
  return made->fd();
}

// Returns 0, or the errno of what is wrong.
int error_in(int domain, int type, int protocol) {
  if (domain != AF_INET && domain != AF_INET6) return EAFNOSUPPORT;
  if ((type & kTypeFlags) != 0 && refuses_type_flags()) return EPROTONOSUPPORT;
  switch (type & ~kTypeFlags) {
    case SOCK_STREAM: return protocol == 0 || protocol == IPPROTO_TCP ? 0 : EPROTONOSUPPORT;
    case SOCK_DGRAM: return protocol == 0 || protocol == IPPROTO_UDP ? 0 : EPROTONOSUPPORT;
    default: return ESOCKTNOSUPPORT;
  }
}

iovec part_of(const void* bytes, std::size_t length) {
  return {.iov_base = const_cast<void*>(bytes), .iov_len = length};
}

// Returns 0, or the errno. readv(2): EINVAL when the lengths together do not fit ssize_t.
int refusal_of(std::span<const iovec> parts) {
  const bool is_somewhere = std::ranges::all_of(
      parts, [](const iovec& part) { return part.iov_base != nullptr || part.iov_len == 0; });
  if (!is_somewhere) return EFAULT;
  const auto total = checked_total<std::size_t>(parts, &iovec::iov_len);
  return total && *total <= SSIZE_MAX ? 0 : EINVAL;
}

ssize_t receive(int fd, std::span<const iovec> parts, int flags, NameBuffer from = {}) {
  if (const int error = refusal_of(parts); error != 0) return fail(error);
  return with(fd, [&](Socket& socket) { return socket.receive(parts, flags, from); });
}

ssize_t send(int fd, std::span<const iovec> parts, int flags, const sockaddr* to = nullptr,
             socklen_t length = 0) {
  if (const int error = refusal_of(parts); error != 0) return fail(error);
  return with(fd, [&](Socket& socket) { return socket.send(parts, flags, to, length); });
}

bool is_valid(const iovec* parts, int count) {
  return count >= 0 && count <= IOV_MAX && (parts != nullptr || count == 0);
}

bool is_valid(const msghdr& message) {
  return message.msg_iovlen <= IOV_MAX && (message.msg_iov != nullptr || message.msg_iovlen == 0);
}

}  // namespace
}  // namespace verbena::rdmacm::rsocket

using namespace verbena::rdmacm;
using namespace verbena::rdmacm::rsocket;

// The devices are opened here, whatever else: what that takes must happen where librspreload, which
// calls this, lets all calls through.
int rsocket(int domain, int type, int protocol) try {
  if (const int error = error_in(domain, type, protocol)) return fail(error);
  if (open_devices().empty()) return fail(errno);
  if ((type & ~kTypeFlags) == SOCK_STREAM) return enter(StreamSocket::create(domain, type));
  return enter(DatagramSocket::create(domain, type));
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rbind(int fd, const sockaddr* address, socklen_t length) try {
  return with(fd, [&](Socket& socket) { return socket.bind(address, length); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rlisten(int fd, int backlog) try {
  return with(fd, [&](Socket& socket) { return socket.listen(backlog); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int raccept(int fd, sockaddr* address, socklen_t* length) try {
  return with(fd, [&](Socket& listener) {
    const Socket::Made made = listener.accept();
    if (made != nullptr && address != nullptr && made->peer_name({address, length}) != 0) return -1;
    return enter(made);
  });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rconnect(int fd, const sockaddr* address, socklen_t length) try {
  return with(fd, [&](Socket& socket) { return socket.connect(address, length); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rshutdown(int fd, int how) try {
  return with(fd, [&](Socket& socket) { return socket.shutdown(how); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rclose(int fd) try {
  if (const auto socket = sockets().take(fd)) {
    socket->close();
    return 0;
  }
  return wait_lists().take(fd) != nullptr ? 0 : fail(EBADF);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rrecv(int fd, void* buffer, size_t length, int flags) try {
  return rrecvfrom(fd, buffer, length, flags, nullptr, nullptr);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rrecvfrom(int fd, void* buffer, size_t length, int flags, sockaddr* from,
                  socklen_t* from_length) try {
  const iovec part = part_of(buffer, length);
  return receive(fd, {&part, 1}, flags, {from, from_length});
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rrecvmsg(int fd, msghdr* message, int flags) try {
  if (message == nullptr) return fail(EFAULT);
  if (!is_valid(*message)) return fail(EMSGSIZE);
  auto* const name = static_cast<sockaddr*>(message->msg_name);
  const ssize_t received = receive(fd, {message->msg_iov, message->msg_iovlen}, flags,
                                   {name, name != nullptr ? &message->msg_namelen : nullptr});
  if (received < 0) return received;
  message->msg_controllen = 0;
  message->msg_flags = 0;
  return received;
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rread(int fd, void* buffer, size_t length) try {
  return rrecv(fd, buffer, length, 0);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rreadv(int fd, const iovec* parts, int count) try {
  if (!is_valid(parts, count)) return fail(EINVAL);
  return receive(fd, {parts, static_cast<size_t>(count)}, 0);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rsend(int fd, const void* buffer, size_t length, int flags) try {
  return rsendto(fd, buffer, length, flags, nullptr, 0);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rsendto(int fd, const void* buffer, size_t length, int flags, const sockaddr* to,
                socklen_t to_length) try {
  const iovec part = part_of(buffer, length);
  return send(fd, {&part, 1}, flags, to, to_length);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rsendmsg(int fd, const msghdr* message, int flags) try {
  if (message == nullptr) return fail(EFAULT);
  if (message->msg_control != nullptr && message->msg_controllen != 0) return fail(EOPNOTSUPP);
  if (!is_valid(*message)) return fail(EMSGSIZE);
  return send(fd, {message->msg_iov, message->msg_iovlen}, flags,
              static_cast<const sockaddr*>(message->msg_name), message->msg_namelen);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rwrite(int fd, const void* buffer, size_t length) try {
  return rsend(fd, buffer, length, 0);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

ssize_t rwritev(int fd, const iovec* parts, int count) try {
  if (!is_valid(parts, count)) return fail(EINVAL);
  return send(fd, {parts, static_cast<size_t>(count)}, 0);
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rgetpeername(int fd, sockaddr* address, socklen_t* length) try {
  return with(fd, [&](Socket& socket) { return socket.peer_name({address, length}); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rgetsockname(int fd, sockaddr* address, socklen_t* length) try {
  return with(fd, [&](Socket& socket) { return socket.local_name({address, length}); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rsetsockopt(int fd, int level, int name, const void* value, socklen_t length) try {
  return with(fd, [&](Socket& socket) { return socket.set_option({level, name}, value, length); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rgetsockopt(int fd, int level, int name, void* value, socklen_t* length) try {
  return with(fd, [&](Socket& socket) { return socket.get_option({level, name}, value, length); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int rfcntl(int fd, int command, ...) try {
  va_list arguments;
  va_start(arguments, command);
  const int argument = command == F_SETFL || command == F_SETFD ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return with(fd, [&](Socket& socket) { return socket.control(command, argument); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

off_t riomap(int fd, void* buffer, size_t length, int access, int, off_t offset) try {
  return with(fd, [&](Socket& socket) { return socket.map(buffer, length, access, offset); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

int riounmap(int fd, void* buffer, size_t length) try {
  return with(fd, [&](Socket& socket) { return socket.unmap(buffer, length); });
} catch (...) {
  return fail(verbena::abi::errno_of_exception());
}

size_t riowrite(int fd, const void* buffer, size_t count, off_t offset, int flags) try {
  if (buffer == nullptr && count != 0) return static_cast<size_t>(fail(EFAULT));
  return static_cast<size_t>(
      with(fd, [&](Socket& socket) { return socket.write_mapped(buffer, count, offset, flags); }));
} catch (...) {
  return static_cast<size_t>(fail(verbena::abi::errno_of_exception()));
}
