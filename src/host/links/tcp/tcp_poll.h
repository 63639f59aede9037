// TCPPoll: finds the TCP sockets of an adapter that are ready: an epoll, and the targets to notify.
// Not
// thread-safe; the adapter's lock guards it.
#pragma once

#include <sys/epoll.h>

#include <array>

#include "base/time.h"
#include "host/os/descriptor.h"
#include "host/os/error.h"

namespace verbena::host {

// ReadyTarget: the owner of a socket in a TCPPoll.
class ReadyTarget {
 public:
  virtual ~ReadyTarget() = default;
  virtual void on_ready(u32 events, Time now) = 0;  // EPOLLIN and its like
};

class TCPPoll {
 public:
  [[nodiscard]] static Expected<TCPPoll> open();

  [[nodiscard]] int fd() const { return epoll_.get(); }
  // Returns false if the kernel refuses; errno says why.
  [[nodiscard]] bool watch(int socket, u32 events, ReadyTarget& target);
  void change(int socket, u32 events, ReadyTarget& target);
  // Call it before the target goes away and before the socket is closed: no more events follow.
  void forget(int socket, const ReadyTarget& target);

  // Looks without waiting, and tells the targets. Returns how many were ready.
  u32 serve(Time now);

  void close() { epoll_.reset(); }

 private:
  static constexpr int kBatch = 64;
  Descriptor epoll_;
  std::array<epoll_event, kBatch> batch_{};
  int count_ = 0;
};

}  // namespace verbena::host
