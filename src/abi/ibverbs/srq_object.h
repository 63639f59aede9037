// SRQObject: a shared receive queue.
#pragma once

#include "abi/ibverbs/event_account.h"
#include "abi/ibverbs/pd_object.h"

namespace verbena::abi {

struct XRCDObject;

struct SRQObject final : ibv_srq, host::EventTarget {
  SRQObject() : ibv_srq{} {}

  static SRQObject& of(ibv_srq* srq) { return *static_cast<SRQObject*>(srq); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }

  [[nodiscard]] host::EventDescriptor* on_completion_event() override { return nullptr; }
  void on_async_event(const AsyncEvent& event) override;

  SharedReceiveQueue* queue = nullptr;
  XRCDObject* xrcd = nullptr;  // of an XRC SRQ
  Use pd_use;
  EventAccount async_events{events_completed};
};

// Out of the device, its unread events forgotten; kBusy and unchanged while a QP has it. The object
// itself stays until the application has acknowledged the events it has read.
[[nodiscard]] Status withdraw(SRQObject& srq);

}  // namespace verbena::abi
