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
  // `completed`: the field of the ABI's struct that counts what the application has acknowledged.
  // Without it only this account counts.
  EventAccount() = default;
  explicit EventAccount(u32& completed) : completed_(&completed) {}

  void on_queued() {
    const std::lock_guard lock(mutex_);
    ++queued_;
  }
  [[nodiscard]] u64 queued() {  // since the beginning
    const std::lock_guard lock(mutex_);
    return queued_;
  }
  // The application has acknowledged so many.
  void on_acknowledged(u32 count) {
    const std::lock_guard lock(mutex_);
    if (completed_ != nullptr) *completed_ += count;
    settled_ += count;
    some_settled_.notify_all();
  }
  // They were taken back from the queue before the application saw them.
  void on_settled(u64 count) {
    const std::lock_guard lock(mutex_);
    settled_ += count;
    some_settled_.notify_all();
  }
  void wait_until_settled() {
    std::unique_lock lock(mutex_);
    some_settled_.wait(lock, [this] { return settled_ >= queued_; });
  }
  // So many since the beginning.
  void wait_until_settled(u64 count) {
    std::unique_lock lock(mutex_);
    some_settled_.wait(lock, [this, count] { return settled_ >= count; });
  }
  // Returns false if some are still outstanding after `limit`.
  [[nodiscard]] bool settles_within(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return some_settled_.wait_for(lock, limit, [this] { return settled_ >= queued_; });
  }
  [[nodiscard]] u64 outstanding() {
    const std::lock_guard lock(mutex_);
    return queued_ > settled_ ? queued_ - settled_ : 0;
  }

 private:
  u32* const completed_ = nullptr;
  std::mutex mutex_;
  std::condition_variable some_settled_;
  u64 queued_ = 0, settled_ = 0;  // more settled, when an application acknowledges too much
};

}  // namespace verbena::abi
