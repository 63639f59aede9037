// ChannelObject: an event channel: a pollable descriptor and the events that wait to be read.
#pragma once

#include <memory>

#include "abi/rdmacm/event_object.h"
#include "host/events/event_queue.h"

namespace verbena::rdmacm {

struct ChannelObject : rdma_event_channel {
  // Returns nullptr and sets errno on failure.
  [[nodiscard]] static ChannelObject* create();
  static ChannelObject& of(rdma_event_channel* channel) {
    return *static_cast<ChannelObject*>(channel);
  }
  ~ChannelObject();

  void close();  // drops what waits; from here on reading fails with EBADF

  void push(std::unique_ptr<EventObject> event) { events->push(event.release()); }
  // All that wait and are of this ID, in their order.
  [[nodiscard]] std::vector<std::unique_ptr<EventObject>> take_events_of(const IdObject& id);

  std::unique_ptr<host::EventQueue<EventObject*>> events;
};

}  // namespace verbena::rdmacm
