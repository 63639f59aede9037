// WakingMutex: the lock of an adapter. Its holder lists the sleepers to wake, and unlock() wakes
// them when the lock is free. A woken thread often runs at once on the core of its waker: it would
// find the lock taken, and sleep again.
#pragma once

#include <sched.h>

#include <atomic>
#include <utility>

#include "host/os/no_cancellation.h"
#include "host/progress/adaptive_mutex.h"
#include "host/progress/wake_list.h"

namespace verbena::host {

class WakingMutex {
 public:
  void lock() { mutex_.lock(); }
  [[nodiscard]] bool try_lock() { return mutex_.try_lock(); }
  void unlock() { wakes_.is_empty() ? mutex_.unlock() : unlock_and_wake(); }
  // As lock(), but returns when no thread wakes sleepers any more. Then no descriptor that was
  // listed before is still in use. Not for a thread that holds the lock.
  void lock_after_wakes() {
    mutex_.lock();
    while (waking_.load(std::memory_order_acquire) != 0) ::sched_yield();
  }
  // For the holder of the lock.
  [[nodiscard]] WakeList& wakes() { return wakes_; }

 private:
  void unlock_and_wake() {
    const NoCancellation guard;
    const WakeList due = std::exchange(wakes_, {});
    waking_.fetch_add(1, std::memory_order_relaxed);
    mutex_.unlock();
    due.wake_all();
    waking_.fetch_sub(1, std::memory_order_release);
  }

  AdaptiveMutex mutex_;
  WakeList wakes_;
  std::atomic<u32> waking_{0};  // threads between unlock() and their last wake
};

}  // namespace verbena::host
