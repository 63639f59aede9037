// The way through host memory and TCP: a connection to ourselves, with a thread at its other end
// that puts messages into GPU memory.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "cli/gpu_paths/driver.h"

namespace verbena::gpu_paths {

class TCPWay {
 public:
  TCPWay(const Driver& driver, const Buffers& buffers, std::size_t bytes)
      : driver_(driver), buffers_(buffers), bytes_(bytes) {
    connect();
    receiver_ = std::thread([this] { receive(); });
  }
  ~TCPWay() {
    ::shutdown(sender_, SHUT_RDWR);
    receiver_.join();
    ::close(sender_);
    ::close(other_end_);
  }
  void move() {
    must(driver_.to_host(buffers_.host_from, buffers_.from, bytes_) == 0, "cuMemcpyDtoH");
    const char* at = static_cast<const char*>(buffers_.host_from);
    for (std::size_t left = bytes_; left != 0;) {
      const ssize_t sent = ::send(sender_, at, left, 0);
      must(sent > 0, "send");
      at += sent;
      left -= static_cast<std::size_t>(sent);
    }
    ++moved_;
    while (arrived_.load(std::memory_order_acquire) != moved_) std::this_thread::yield();
  }

 private:
  void connect() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    must(::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0 &&
             ::getsockname(listener, generic, &size) == 0,
         "listen");
    sender_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(::connect(sender_, generic, size) == 0, "connect");
    other_end_ = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    must(other_end_ >= 0, "accept");
    const int on = 1;
    ::setsockopt(sender_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::close(listener);
  }
  void receive() {
    driver_.use();
    for (;;) {
      char* at = static_cast<char*>(buffers_.host_to);
      for (std::size_t left = bytes_; left != 0;) {
        const ssize_t got = ::recv(other_end_, at, left, 0);
        if (got <= 0) return;
        at += got;
        left -= static_cast<std::size_t>(got);
      }
      must(driver_.to_device(buffers_.to, buffers_.host_to, bytes_) == 0, "cuMemcpyHtoD");
      arrived_.fetch_add(1, std::memory_order_release);
    }
  }

  const Driver& driver_;
  const Buffers& buffers_;
  const std::size_t bytes_;
  int sender_ = -1, other_end_ = -1;
  std::uint64_t moved_ = 0;
  std::atomic<std::uint64_t> arrived_{0};
  std::thread receiver_;
};

}  // namespace verbena::gpu_paths
