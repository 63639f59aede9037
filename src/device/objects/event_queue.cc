#include "device/objects/event_queue.h"

#include <bit>

namespace verbena {

void AsyncEventQueue::raise(EventSource& source, AsyncEventType type) {
  source.pending |= 1u << static_cast<u32>(type);
  waiting_.push_back(source);
}

void AsyncEventQueue::forget(EventSource& source) {
  source.pending = 0;
  waiting_.remove(source);
}

std::optional<AsyncEvent> AsyncEventQueue::poll() {
  EventSource* const source = waiting_.front();
  if (source == nullptr) return std::nullopt;
  const auto type = static_cast<AsyncEventType>(std::countr_zero(source->pending));
  source->pending &= source->pending - 1;
  if (source->pending == 0) waiting_.remove(*source);
  return AsyncEvent{.type = type, .qp = source->qp, .cq = source->cq, .srq = source->srq};
}

}  // namespace verbena
