// Asynchronous events as programs read them. ibv_get_async_event(3).
#pragma once

#include <infiniband/verbs.h>

#include "device/device.h"

namespace verbena::abi {

using EventElement = decltype(ibv_async_event::element);

[[nodiscard]] ibv_event_type to_ibv(AsyncEventType type);
[[nodiscard]] inline ibv_async_event to_ibv(AsyncEventType type, const EventElement& element) {
  return {.element = element, .event_type = to_ibv(type)};
}

// Whether the event is about this object. Objects have distinct addresses, whatever their kind.
[[nodiscard]] inline bool concerns(const ibv_async_event& event, const void* object) {
  return event.element.cq == object;
}

}  // namespace verbena::abi
