// AdaptiveMutex: a mutex for short critical sections: tries for about a microsecond before it
// sleeps, since to be woken takes twenty.
#pragma once

#include <mutex>

#include "base/types.h"

namespace verbena::host {

class AdaptiveMutex {
 public:
  void lock() {
    for (u32 i = 0; i < kTries; ++i) {
      if (mutex_.try_lock()) return;
      __builtin_ia32_pause();
    }
    mutex_.lock();
  }
  [[nodiscard]] bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  static constexpr u32 kTries = 64;
  std::mutex mutex_;
};

}  // namespace verbena::host
