#include "host/links/tcp/tcp_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"

namespace verbena::host {
namespace {

constexpr u32 kLeastSegment = 536;  // RFC 9293, 3.7.1

Descriptor open_socket(const GID& address) {
  Descriptor socket =
      open_kernel_socket(family_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  const int yes = 1;
  if (socket.is_open() && !set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, yes)) socket.reset();
  return socket;
}

// Requests are small, and wait for nothing.
void hurry(const Descriptor& socket) {
  const int yes = 1;
  (void)set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, yes);
}

bool bind_to(const Descriptor& socket, const TCPEndpoint& at, u32 interface_index) {
  const SocketAddress address(at.address, at.port, interface_index);
  return ::bind(socket.get(), address.data(), address.size()) == 0;
}

}  // namespace

Descriptor listen_at(const TCPEndpoint& at, u32 interface_index, int backlog) {
  Descriptor socket = open_socket(at.address);
  const int yes = 1;
  if (socket.is_open() && !at.address.is_ipv4())
    (void)set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, yes);
  if (!socket.is_open() || !bind_to(socket, at, interface_index) ||
      ::listen(socket.get(), backlog) != 0)
    return {};
  return socket;
}

Descriptor connect_to(const TCPEndpoint& to, const TCPEndpoint& from, u32 interface_index) {
  Descriptor socket = open_socket(from.address);
  if (!socket.is_open()) return {};
  if (!bind_to(socket, from, interface_index) &&
      (errno != EADDRINUSE || !bind_to(socket, {from.address, 0}, interface_index)))
    return {};
  hurry(socket);
  const SocketAddress address(to.address, to.port, interface_index);
  if (::connect(socket.get(), address.data(), address.size()) != 0 && errno != EINPROGRESS)
    return {};
  return socket;
}

Descriptor accept_from(int listener, TCPEndpoint& peer) {
  sockaddr_storage from{};
  socklen_t size = sizeof from;
  Descriptor socket(
      ::accept4(listener, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return socket;
  hurry(socket);
  peer = {gid_of(from), port_of(from)};
  return socket;
}

TCPEndpoint endpoint_of(int socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) return {};
  return {gid_of(at), port_of(at)};
}

TCPTuple ends_of(int socket) {
  const TCPEndpoint local = endpoint_of(socket);
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0) return {};
  return {local.address, gid_of(at), local.port, port_of(at)};
}

int error_of(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

u32 segment_bytes_of(int socket) {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &bytes, &size) != 0 || bytes <= 0)
    return kLeastSegment;
  return static_cast<u32>(bytes);
}

}  // namespace verbena::host
