// QueueTarget: an EventTarget whose completion events go to a queue, as those of a CQ with a
// completion channel do.
#pragma once

#include <memory>
#include <utility>

#include "host/events/event_queue.h"
#include "host/events/event_target.h"

namespace verbena::host {

class QueueTarget final : public EventTarget {
 public:
  [[nodiscard]] EventDescriptor* on_completion_event() override { return queue_->put(1); }
  void on_async_event(const AsyncEvent&) override {}
  EventQueue<int>& queue() { return *queue_; }

 private:
  std::unique_ptr<EventQueue<int>> queue_ = std::move(*EventQueue<int>::create());
};

}  // namespace verbena::host
