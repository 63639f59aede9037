// TCP connections of the programs in these folders.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/limits/process.h"

namespace tcp {

inline sockaddr_in at(const char* address, std::size_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  limits::require(inet_pton(AF_INET, address, &result.sin_addr) == 1, "address");
  return result;
}

inline int accept_one(std::size_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in here = at("0.0.0.0", port);
  limits::require(bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0,
                  "bind");
  limits::require(listen(listener, 1) == 0, "listen");
  const int s = accept(listener, nullptr, nullptr);
  limits::require(s >= 0, "accept");
  return s;
}

inline int connect_to(const char* address, std::size_t port) {
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in there = at(address, port);
  limits::require(connect(s, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0,
                  "connect");
  return s;
}

inline void send(int s, const void* data, std::size_t size) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  for (std::size_t sent = 0; sent < size;) {
    const ssize_t n = write(s, from + sent, size - sent);
    limits::require(n > 0, "write");
    sent += static_cast<std::size_t>(n);
  }
}

inline void receive(int s, void* data, std::size_t size) {
  auto* to = static_cast<std::uint8_t*>(data);
  for (std::size_t got = 0; got < size;) {
    const ssize_t n = read(s, to + got, size - got);
    limits::require(n > 0, "read");
    got += static_cast<std::size_t>(n);
  }
}

}  // namespace tcp
