// CQObject: a completion queue. Every one can be polled both ways: ibv_poll_cq, and the ibv_cq_ex
// calls.
#pragma once

#include <mutex>

#include "abi/ibverbs/channel_object.h"
#include "abi/ibverbs/event_account.h"
#include "abi/ibverbs/use_count.h"

namespace verbena::abi {

struct CQObject final : ibv_cq_ex, host::EventTarget {
  CQObject() : ibv_cq_ex{} {}

  static CQObject& of(ibv_cq_ex* cq) { return *static_cast<CQObject*>(cq); }
  static CQObject& of(ibv_cq* cq) { return of(reinterpret_cast<ibv_cq_ex*>(cq)); }
  [[nodiscard]] ibv_cq* verbs() { return ibv_cq_ex_to_cq(this); }
  [[nodiscard]] ContextObject& owner() const { return ContextObject::of(context); }

  [[nodiscard]] host::EventDescriptor* on_completion_event() override;
  void on_async_event(const AsyncEvent& event) override;

  CompletionQueue* queue = nullptr;
  Use parent_domain;  // when made with one
  EventAccount completion_events{comp_events_completed}, async_events{async_events_completed};

  bool single_threaded = false;  // the application polls from one thread at a time
  std::mutex polling;            // held from ibv_start_poll to ibv_end_poll, unless single_threaded
  std::mutex checked;            // held where the checker hears of what was polled
  CQE current;                   // what the read functions of ibv_cq_ex read
};

// Out of the device, its unread events forgotten; kBusy and unchanged while a QP has it. The object
// itself stays until the application has acknowledged the events it has read.
[[nodiscard]] Status withdraw(CQObject& cq);

}  // namespace verbena::abi
