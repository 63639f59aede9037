// TCP sockets of the rendezvous, with deadlines instead of waiting for ever.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/types.h"
#include "coll/error.h"
#include "communicator/clock.h"

namespace verbena::coll {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  void close() { Descriptor(std::move(*this)); }

 private:
  int fd_ = -1;
};

// Listens on `host` (any address if ""), port 0: any port. *port gets the one that it has.
[[nodiscard]] Expected<Descriptor> listen_on(const std::string& host, u16 wanted, u16* port);
// One attempt.
[[nodiscard]] Expected<Descriptor> connect_to(const std::string& host, u16 port, i64 deadline);
[[nodiscard]] Expected<Descriptor> accept_from(int listener, i64 deadline);

// All of it, or a failure: "nothing arrived in time", "the connection was closed", ...
[[nodiscard]] Expected<void> send_all(int socket, std::string_view bytes, i64 deadline);
[[nodiscard]] Expected<std::string> receive_all(int socket, std::size_t length, i64 deadline);

}  // namespace verbena::coll
