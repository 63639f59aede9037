// TurnLock: a mutex whose holder can see that other threads wait for it, and let them go first. A
// thread that polls holds it nearly all the time, and unlock() alone would give it to nobody: the
// poller has it again before a waiting thread wakes.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>

#include "base/types.h"

namespace verbena::agent {

class TurnLock {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    turns_.fetch_add(1, std::memory_order_relaxed);
  }
  void unlock() { mutex_.unlock(); }

  // Unlocks for the threads that wait, and locks again after one has had its turn. Returns false at
  // once if none waits. The caller holds the lock.
  bool let_others_in() {
    if (waiting_.load(std::memory_order_relaxed) == 0) return false;
    const u64 before = turns_.load(std::memory_order_relaxed);
    unlock();
    while (turns_.load(std::memory_order_relaxed) == before &&
           waiting_.load(std::memory_order_relaxed) != 0)
      sched_yield();
    lock();
    return true;
  }

 private:
  std::mutex mutex_{};
  std::atomic<u32> waiting_ = 0;  // threads that sleep in lock()
  std::atomic<u64> turns_ = 0;    // of threads that have slept there
};

}  // namespace verbena::agent
