#include "host/events/event_delivery.h"

namespace verbena::host {

void EventDelivery::deliver(const AsyncEvent& event) const {
  if (event.qp == nullptr && event.cq == nullptr && event.srq == nullptr) {
    for (EventTarget* listener : port_listeners_) listener->on_async_event(event);
    return;
  }
  void* user = event.qp != nullptr   ? Device::user_of(event.qp)
               : event.cq != nullptr ? Device::user_of(event.cq)
                                     : Device::user_of(event.srq);
  if (user != nullptr) static_cast<EventTarget*>(user)->on_async_event(event);
}

bool EventDelivery::deliver_all(Device& device, Explainer* explainer, Time now) {
  bool woke = false;
  while (const std::optional<void*> user = device.poll_completion_event()) {
    if (*user == nullptr) continue;
    EventDescriptor* const channel = static_cast<EventTarget*>(*user)->on_completion_event();
    if (channel != nullptr) wake(*channel);
    woke = true;
  }
  while (const std::optional<AsyncEvent> event = device.poll_async_event()) {
    if (explainer != nullptr) explainer->on_event(device, *event, now);
    deliver(*event);
  }
  return woke;
}

}  // namespace verbena::host
