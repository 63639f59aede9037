#include "host/http/server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "host/network/socket_address.h"
#include "host/os/clock.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"

namespace verbena::host {
namespace {

constexpr int kBacklog = 16;

bool would_block() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

Expected<HTTPServer> HTTPServer::listen(const GID& address, u16 port) {
  Descriptor socket =
      open_kernel_socket(family_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  const SocketAddress local(address, port, 0);
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (!socket.is_open() || !set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1) ||
      ::bind(socket.get(), local.data(), local.size()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    return failure(errno, "cannot listen on TCP port " + std::to_string(port) + " of " +
                              address.to_string() + ": " + std::strerror(errno));
  return HTTPServer(std::move(socket), port_of(bound));
}

void HTTPServer::serve(int stop, const std::function<HTTPAnswer()>& page) {
  using Phase = Connection::Phase;
  while (true) {
    const short listening = connections_.size() < kMaxConnections ? POLLIN : 0;
    std::vector<pollfd> waiting = {{.fd = stop, .events = POLLIN, .revents = 0},
                                   {.fd = socket_.get(), .events = listening, .revents = 0}};
    for (const Connection& c : connections_)
      waiting.push_back(
          {.fd = c.socket.get(),
           .events = static_cast<short>(c.phase == Phase::kWriting ? POLLOUT : POLLIN),
           .revents = 0});
    constexpr int kLookMs = 500;  // for those whose time is over
    if (::poll(waiting.data(), waiting.size(), connections_.empty() ? -1 : kLookMs) < 0 &&
        errno != EINTR)
      return;
    if (waiting[0].revents != 0) return;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      Connection& c = connections_[i];
      if (waiting[i + 2].revents == 0) continue;
      if (c.phase == Phase::kReading)
        read(c, page);
      else if (c.phase == Phase::kWriting)
        write(c);
      else
        drain(c);
    }
    const Time now = monotonic_now();
    std::erase_if(connections_,
                  [&](const Connection& c) { return c.phase == Phase::kOver || now >= c.until; });
    if ((waiting[1].revents & POLLIN) != 0) accept();
  }
}

void HTTPServer::accept() {
  Descriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return;
  connections_.push_back(
      {.socket = std::move(socket), .until = monotonic_now() + kPatience, .in = {}, .out = {}});
}

void HTTPServer::read(Connection& c, const std::function<HTTPAnswer()>& page) {
  std::array<char, 2048> bytes;
  const ssize_t size = ::recv(c.socket.get(), bytes.data(), bytes.size(), 0);
  if (size <= 0) {
    if (size == 0 || !would_block()) c.phase = Connection::Phase::kOver;
    return;
  }
  c.in.append(bytes.data(), static_cast<std::size_t>(size));
  const HTTPRequest request = parse_request(c.in);
  if (request.state == HTTPRequest::State::kIncomplete) return;
  c.out = to_wire(answer_to(request, page), request.method);
  c.phase = Connection::Phase::kWriting;
  write(c);
}

void HTTPServer::write(Connection& c) {
  const ssize_t size = ::send(c.socket.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
  if (size < 0) {
    if (!would_block()) c.phase = Connection::Phase::kOver;
    return;
  }
  c.out.erase(0, static_cast<std::size_t>(size));
  if (!c.out.empty()) return;
  ::shutdown(c.socket.get(), SHUT_WR);  // closed with bytes unread, the answer would be lost
  c.phase = Connection::Phase::kEnding;
}

void HTTPServer::drain(Connection& c) {
  std::array<char, 4096> ignored;
  const ssize_t size = ::recv(c.socket.get(), ignored.data(), ignored.size(), 0);
  if (size == 0 || (size < 0 && !would_block())) c.phase = Connection::Phase::kOver;
}

}  // namespace verbena::host
