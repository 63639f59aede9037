// ReadyCall: a ReadyTarget that calls a member function of its owner, so that an object may have
// several descriptors in a TCPPoll.
#pragma once

#include <utility>

#include "host/links/tcp/tcp_poll.h"

namespace verbena::host {

template <typename T, void (T::*kHandler)(u32 events, Time now)>
class ReadyCall final : public ReadyTarget {
 public:
  // Both outlive this.
  ReadyCall(T& owner, TCPPoll& poll) : owner_(owner), poll_(poll) {}
  ~ReadyCall() override { forget(); }

  // Watches one descriptor. Returns false if the kernel refuses; errno says why.
  [[nodiscard]] bool watch(int fd, u32 events) {
    fd_ = fd;
    return poll_.watch(fd, events, *this);
  }
  void change(u32 events) { poll_.change(fd_, events, *this); }
  void forget() {  // before the descriptor is closed
    if (fd_ >= 0) poll_.forget(std::exchange(fd_, -1), *this);
  }
  void on_ready(u32 events, Time now) override { (owner_.*kHandler)(events, now); }

 private:
  T& owner_;
  TCPPoll& poll_;
  int fd_ = -1;
};

}  // namespace verbena::host
