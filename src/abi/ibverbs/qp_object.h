// QPObject: a queue pair.
#pragma once

#include <memory>
#include <vector>

#include "abi/ibverbs/event_account.h"
#include "abi/ibverbs/newer_verbs.h"
#include "abi/ibverbs/pd_object.h"
#include "abi/ibverbs/send_builder.h"

namespace verbena::abi {

struct XRCDObject;

struct QPObject final : NewerQPEx, host::EventTarget {
  QPObject() : NewerQPEx{} {}

  static QPObject& of(ibv_qp_ex* qp) { return *static_cast<QPObject*>(qp); }
  static QPObject& of(ibv_qp* qp) { return of(reinterpret_cast<ibv_qp_ex*>(qp)); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(qp_base.context); }

  [[nodiscard]] host::EventDescriptor* on_completion_event() override { return nullptr; }
  void on_async_event(const AsyncEvent& event) override;

  QueuePair* queue = nullptr;
  XRCDObject* xrcd = nullptr;  // of an XRC target
  Use pd_use;
  std::vector<Use> counter_uses;
  EventAccount async_events{qp_base.events_completed};
  std::unique_ptr<SendBuilder> builder;  // only when made with send_ops_flags
};

// Out of the device, its unread events forgotten. The object itself stays until the application has
// acknowledged the events it has read.
[[nodiscard]] Status withdraw(QPObject& qp);

// The sizes its queues have, as granted.
[[nodiscard]] ibv_qp_cap granted_capacity(const QPObject& qp);

// After a QP was reset or destroyed: returns when the copies to and from far memory that it had
// begun have ended. No lock is held meanwhile.
void wait_for_forgotten_copies(ContextObject& owner);

}  // namespace verbena::abi
