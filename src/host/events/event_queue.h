// EventQueue<T>: events on their way to the application, behind a real descriptor: readable while
// there are any, for poll(), epoll and select(). Behind completion channels and asynchronous
// events. pop() blocks as read() on that descriptor would: not, if the application has set
// O_NONBLOCK on it. Thread-safe. push() never blocks. T: a pointer or a small value.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "host/events/event_descriptor.h"

namespace verbena::host {

template <typename T>
class EventQueue {
 public:
  [[nodiscard]] static Expected<std::unique_ptr<EventQueue>> create() {
    Expected<EventDescriptor> descriptor = EventDescriptor::open();
    if (!descriptor) return tl::unexpected(descriptor.error());
    return std::unique_ptr<EventQueue>(new EventQueue(std::move(*descriptor)));
  }

  [[nodiscard]] int fd() const { return descriptor_.fd(); }

  void push(T event) {
    if (EventDescriptor* const descriptor = put(std::move(event))) descriptor->add();
  }
  // As push(), but leaves it to the caller to add one to the descriptor. Returns nullptr if that is
  // not needed.
  [[nodiscard]] EventDescriptor* put(T&& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    return is_awaited_ && !std::exchange(is_promised_, true) ? nullptr : &descriptor_;
  }
  // The oldest event. An errno where there is none: EAGAIN with O_NONBLOCK, EINTR after a signal.
  [[nodiscard]] tl::expected<T, int> pop() {
    for (;;) {
      if (const int error = descriptor_.take(); error != 0) return tl::unexpected(error);
      const std::lock_guard lock(mutex_);
      if (events_.empty()) continue;  // remove_if() took it: only its count was left
      return take_front();
    }
  }

  // For a thread that polls for an event before it sleeps in pop(). An event that arrives between
  // await() and take_awaited() does not signal the descriptor, and belongs to this thread.
  void await() {
    const std::lock_guard lock(mutex_);
    is_awaited_ = true;
  }
  [[nodiscard]] bool is_empty() const {
    const std::lock_guard lock(mutex_);
    return events_.empty();
  }
  [[nodiscard]] std::optional<T> take_awaited() {
    const std::lock_guard lock(mutex_);
    is_awaited_ = false;
    if (!std::exchange(is_promised_, false) || events_.empty()) return std::nullopt;
    return take_front();
  }
  // Whether pop() waits where there is no event.
  [[nodiscard]] bool blocks() const { return descriptor_.blocks(); }

  // No more events: pop() gives EBADF, but to threads that block in it, as those in read() do.
  void close() { descriptor_.close(); }
  // Drops events of an object that goes away, and for which push() is not called any more, nor
  // running, and nothing is left to add. Their counts go too, so the descriptor tells the truth.
  template <typename Predicate>
  std::size_t remove_if(Predicate predicate) {
    const std::lock_guard lock(mutex_);
    const std::size_t removed = std::erase_if(events_, predicate);
    for (std::size_t i = 0; i < removed; ++i)
      if (!std::exchange(is_promised_, false)) descriptor_.try_take();
    return removed;
  }

 private:
  explicit EventQueue(EventDescriptor descriptor) : descriptor_(std::move(descriptor)) {}

  [[nodiscard]] T take_front() {
    T event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

  EventDescriptor descriptor_;
  mutable std::mutex mutex_;
  std::deque<T> events_;  // as many as the descriptor counts, and the promised one
  bool is_awaited_ = false, is_promised_ = false;
};

}  // namespace verbena::host
