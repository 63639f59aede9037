// AdaptiveMutex: a mutex for short critical sections: tries for about a microsecond before it
// sleeps, since to be woken takes twenty. One word, so that to take it and to let go of it are an
// instruction each where nobody else wants it.
#pragma once

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
    // Who sleeps, or has slept, says that others may: it cannot know.
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree)
      state_.wait(kWanted, std::memory_order_relaxed);
  }
  [[nodiscard]] bool try_lock() {
    u32 expected = kFree;
    return state_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kWanted) [[unlikely]]
      state_.notify_one();
  }

 private:
  static constexpr u32 kTries = 64;
  static constexpr u32 kFree = 0, kTaken = 1, kWanted = 2;
  std::atomic<u32> state_{kFree};
};

}  // namespace verbena::host
