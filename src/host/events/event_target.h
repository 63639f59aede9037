// EventTarget: the receiver of a CQ's, QP's or SRQ's events. The `user` pointer given to the
// device's
// create calls by a host program is an EventTarget* (or nullptr).
// Called with the adapter locked: an implementation must not block or call the adapter.
#pragma once

#include "device/device.h"
#include "host/events/event_descriptor.h"

namespace verbena::host {

class EventTarget {
 public:
  virtual ~EventTarget() = default;
  // A CQ's requested notification. Returns the descriptor that the caller adds one to when the
  // adapter is unlocked, or nullptr. It stays open until Adapter::wait_for_wakes() has returned.
  [[nodiscard]] virtual EventDescriptor* on_completion_event() = 0;
  virtual void on_async_event(const AsyncEvent& event) = 0;
};

}  // namespace verbena::host
