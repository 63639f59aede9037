// wait_for_event(): takes an event of an adapter from its queue as EventQueue::pop() does, and
// receives in this thread until the event is there (docs/architecture/progress.md).
#pragma once

#include <pthread.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include "host/adapter.h"
#include "host/events/event_queue.h"

namespace verbena::host {

// EventWait: one thread's wait. Its end is told also when the thread is cancelled.
class EventWait {
 public:
  explicit EventWait(Adapter& adapter) : adapter_(adapter), state_(adapter.begin_wait()) {}
  ~EventWait() { end(); }
  EventWait(const EventWait&) = delete;
  EventWait& operator=(const EventWait&) = delete;

  [[nodiscard]] bool is_for_link() const { return state_ == Adapter::Wait::kForLink; }
  // These two while it is.
  void receive(const std::function<bool()>& has_event) {
    state_ = adapter_.receive_in_wait(has_event);
  }
  [[nodiscard]] Woken sleep(int event) { return adapter_.sleep_in_wait(event); }
  void end() {
    const Adapter::Wait state = std::exchange(state_, Adapter::Wait::kOver);
    if (state != Adapter::Wait::kOver) adapter_.end_wait(state);
  }

 private:
  Adapter& adapter_;
  Adapter::Wait state_;
};

// A cancellation point. An errno where there is no event, as EventQueue::pop().
template <typename T>
[[nodiscard]] tl::expected<T, int> wait_for_event(Adapter& adapter, EventQueue<T>& queue) {
  if (!queue.is_empty() || !queue.blocks()) return queue.pop();
  pthread_testcancel();
  EventWait wait(adapter);
  while (wait.is_for_link()) {
    queue.await();
    wait.receive([&queue] { return !queue.is_empty(); });
    if (std::optional<T> event = queue.take_awaited()) return std::move(*event);
    if (!wait.is_for_link()) break;
    const Woken woken = wait.sleep(queue.fd());
    if (woken == Woken::kBySignal) return tl::unexpected(EINTR);
    if (woken == Woken::kByEvent) wait.end();  // another thread may take the event first
  }
  return queue.pop();
}

}  // namespace verbena::host
