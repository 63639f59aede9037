// EventTarget: the receiver of a CQ's, QP's or SRQ's events. The `user` pointer given to the
// device's
// create calls by a host program is an EventTarget* (or nullptr).
// Called with the adapter locked: an implementation must not block or call the adapter.
#pragma once

#include "device/device.h"

namespace verbena::host {

class EventTarget {
 public:
  virtual ~EventTarget() = default;
  virtual void on_completion_event() = 0;  // a CQ's requested notification
  virtual void on_async_event(const AsyncEvent& event) = 0;
};

}  // namespace verbena::host
