// AsyncEventQueue: events on their way to the application. Each object has one place in the queue
// and a bit for each type, so it is bounded by the objects that exist, never allocates, and an
// object takes its events along when it is destroyed. Objects are served in the order of their
// first event; the events of one object in the order of AsyncEventType.
#pragma once

#include <optional>

#include "device/intrusive_list.h"
#include "device/objects/async_event.h"

namespace verbena {

// Lies in each object that has events; exactly one of the pointers is set.
struct EventSource {
  QueuePair* qp = nullptr;
  CompletionQueue* cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  u32 pending = 0;  // bit n: the type with value n
  ListLink<EventSource> link{};
};

class AsyncEventQueue {
 public:
  void raise(EventSource& source, AsyncEventType type);
  void forget(EventSource& source);
  [[nodiscard]] std::optional<AsyncEvent> poll();
  [[nodiscard]] bool empty() const { return waiting_.empty(); }

 private:
  IntrusiveList<EventSource, &EventSource::link> waiting_;
};

}  // namespace verbena
