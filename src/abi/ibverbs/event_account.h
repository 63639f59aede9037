// EventAccount: the events of one object that were queued for the application and are not
// acknowledged. Destroying the object waits for the rest of them, as the man pages of
// ibv_get_cq_event and ibv_get_async_event say. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/types.h"

namespace verbena::abi {

class EventAccount {
 public:
  void on_queued() {
    const std::lock_guard lock(mutex_);
    ++outstanding_;
  }
  // Acknowledged, or taken back from the queue before the application saw them.
  void on_settled(u64 count) {
    const std::lock_guard lock(mutex_);
    outstanding_ -= static_cast<i64>(count);
    if (outstanding_ <= 0) settled_.notify_all();
  }
  void wait_until_settled() {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [this] { return outstanding_ <= 0; });
  }
  // false: some are still outstanding after that.
  [[nodiscard]] bool settles_within(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return settled_.wait_for(lock, limit, [this] { return outstanding_ <= 0; });
  }
  [[nodiscard]] u64 outstanding() {
    const std::lock_guard lock(mutex_);
    return outstanding_ > 0 ? static_cast<u64>(outstanding_) : 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable settled_;
  i64 outstanding_ = 0;  // below 0 when an application acknowledges too much
};

}  // namespace verbena::abi
