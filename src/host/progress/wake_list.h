// WakeList: the sleepers that are to be woken: threads behind a completion channel, and processes
// of this host behind their doorbells. Not thread-safe: waking_mutex.h guards it.
#pragma once

#include <array>

#include "base/types.h"
#include "host/events/event_descriptor.h"
#include "host/sharing/process_channel.h"

namespace verbena::host {

class WakeList {
 public:
  static constexpr u32 kMax = 16;

  // If the list is full, the sleeper is woken at once.
  void add(EventDescriptor& channel) { add({.channel = &channel}); }
  void add(ProcessWaker& waker, u32 slot) { add({.waker = &waker, .slot = slot}); }
  [[nodiscard]] bool is_empty() const { return size_ == 0; }
  void wake_all() const {
    for (u32 i = 0; i < size_; ++i) sleepers_[i].wake();
  }

 private:
  struct Sleeper {
    EventDescriptor* channel = nullptr;  // or a process:
    ProcessWaker* waker = nullptr;
    u32 slot = 0;

    void wake() const { channel != nullptr ? channel->add() : waker->wake(slot); }
  };
  void add(const Sleeper& sleeper) {
    if (size_ == kMax) return sleeper.wake();
    sleepers_[size_++] = sleeper;
  }

  std::array<Sleeper, kMax> sleepers_;
  u32 size_ = 0;
};

}  // namespace verbena::host
