// AdaptiveMutex: a mutex for short critical sections: tries for about a microsecond before it
// sleeps, since to be woken takes twenty. One word, so that to take it and to let go of it are an
// instruction each where nobody else wants it. It sleeps by futex(2): std::atomic::wait() first
// offers the core to others, which may keep it for a time slice.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "base/types.h"

namespace verbena::host {

class AdaptiveMutex {
 public:
  void lock() {
    for (u32 i = 0; i < kTries; ++i) {
      if (try_lock()) return;
      __builtin_ia32_pause();
    }
    // A thread that sleeps or has slept sets kWanted: other threads may sleep, and it cannot know.
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree)
      futex(FUTEX_WAIT_PRIVATE, kWanted);
  }
  [[nodiscard]] bool try_lock() {
    u32 expected = kFree;
    return state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWanted) [[unlikely]]
      futex(FUTEX_WAKE_PRIVATE, 1);
  }

 private:
  static constexpr u32 kTries = 64;
  static constexpr u32 kFree = 0, kTaken = 1, kWanted = 2;

  void futex(int operation, u32 value) {
    (void)::syscall(SYS_futex, reinterpret_cast<u32*>(&state_), operation, value, nullptr);
  }

  std::atomic<u32> state_{kFree};
  static_assert(sizeof(state_) == sizeof(u32) && std::atomic<u32>::is_always_lock_free);
};

}  // namespace verbena::host
