// EventDelivery: delivers the events of a device and of its port to their waiting threads. Not
// thread-safe: the adapter's lock guards it.
#pragma once

#include <vector>

#include "host/events/event_target.h"
#include "host/explain/explainer.h"
#include "host/progress/wake_list.h"

namespace verbena::host {

class EventDelivery {
 public:
  // Threads that sleep until a completion are listed in `wakes`, which outlives this.
  explicit EventDelivery(WakeList& wakes) : wakes_(wakes) {}

  void add_port_listener(EventTarget* listener) { port_listeners_.push_back(listener); }
  void remove_port_listener(EventTarget* listener) { std::erase(port_listeners_, listener); }
  [[nodiscard]] u32 port_listeners() const { return static_cast<u32>(port_listeners_.size()); }

  // Completion events of threads that sleep, since the beginning.
  [[nodiscard]] u64 woken() const { return woken_; }

  // An event of an object goes to the object's own target, one of the port to all its listeners.
  void deliver(const AsyncEvent& event) const;
  // Delivers all that `device` has. `explainer`: nullptr where nothing is explained. Returns
  // whether a program was told of a completion.
  bool deliver_all(Device& device, Explainer* explainer, Time now);

 private:
  void wake(EventDescriptor& channel) {
    wakes_.add(channel);
    ++woken_;
  }

  WakeList& wakes_;
  u64 woken_ = 0;
  std::vector<EventTarget*> port_listeners_;
};

}  // namespace verbena::host
