#include "communicator/bootstrap/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

namespace verbena::coll {
namespace {

tl::unexpected<Error> system_failure(const std::string& what, int error) {
  return failure(VERBENA_COLL_RENDEZVOUS, what + ": " + std::strerror(error));
}

// Returns false if the deadline has passed.
bool wait_for(int fd, short events, i64 deadline) {
  while (true) {
    const i64 left = deadline - now_ns();
    if (left <= 0) return false;
    pollfd poll_fd{.fd = fd, .events = events, .revents = 0};
    const int ready =
        poll(&poll_fd, 1, static_cast<int>(std::min<i64>(left / kMillisecond + 1, 1000)));
    if (ready > 0) return true;
  }
}

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Expected<Addresses> resolve(const std::string& host, u16 port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(),
                                &hints, &found);
  if (error != 0)
    return failure(VERBENA_COLL_RENDEZVOUS, "host " + host + ": " + gai_strerror(error));
  return Addresses(found, freeaddrinfo);
}

// Sets options so that small frames leave at once and a host that is gone is detected.
void prepare(int socket) {
  const int on = 1, idle = 5, interval = 3, count = 3;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

}  // namespace

i64 now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return i64{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Expected<Descriptor> listen_on(const std::string& host, u16 wanted, u16* port) {
  const auto addresses = resolve(host, wanted, AI_PASSIVE);
  if (!addresses) return tl::unexpected(addresses.error());
  const addrinfo& address = **addresses;
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return system_failure("socket", errno);
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      listen(socket.get(), 1024) != 0)
    return system_failure("cannot listen on " + host + ":" + std::to_string(wanted), errno);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  *port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return socket;
}

Expected<Descriptor> connect_to(const std::string& host, u16 port, i64 deadline) {
  const auto addresses = resolve(host, port, 0);
  if (!addresses) return tl::unexpected(addresses.error());
  int error = ECONNREFUSED;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) continue;
    error = connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      if (!wait_for(socket.get(), POLLOUT, deadline)) return system_failure("connect", ETIMEDOUT);
      socklen_t length = sizeof error;
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) continue;
    prepare(socket.get());
    return socket;
  }
  return system_failure(host + ":" + std::to_string(port), error);
}

Expected<Descriptor> accept_from(int listener, i64 deadline) {
  while (wait_for(listener, POLLIN, deadline)) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) continue;
    prepare(fd);
    return Descriptor(fd);
  }
  return system_failure("accept", ETIMEDOUT);
}

Expected<void> send_all(int socket, std::string_view bytes, i64 deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return system_failure("the connection was closed", errno);
    } else if (!wait_for(socket, POLLOUT, deadline)) {
      return failure(VERBENA_COLL_RENDEZVOUS, "nothing can be sent");
    }
  }
  return {};
}

Expected<std::string> receive_all(int socket, std::size_t length, i64 deadline) {
  std::string bytes(length, '\0');
  std::size_t got = 0;
  while (got < length) {
    const ssize_t received = recv(socket, bytes.data() + got, length - got, 0);
    if (received > 0) {
      got += static_cast<std::size_t>(received);
    } else if (received == 0) {
      return failure(VERBENA_COLL_RENDEZVOUS, "the connection was closed");
    } else if (errno != EAGAIN && errno != EINTR) {
      return system_failure("the connection broke", errno);
    } else if (!wait_for(socket, POLLIN, deadline)) {
      return failure(VERBENA_COLL_RENDEZVOUS, "nothing arrived in time");
    }
  }
  return bytes;
}

}  // namespace verbena::coll
