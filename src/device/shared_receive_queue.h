// SharedReceiveQueue: receive WQEs that many QPs draw from. IBTA Vol 1, 10.2.9, 11.2.3.
// Invariant: the limit event is raised at most once per set_limit(); it disarms the limit (to 0).
#pragma once

#include "base/status.h"
#include "device/event_queue.h"
#include "device/protection_domain.h"
#include "transport/receive_queue.h"

namespace verbena {

class SharedReceiveQueue {
 public:
  SharedReceiveQueue(u32 slot, ProtectionDomain& domain, const ReceiveQueueLimits& limits,
                     u32 limit, void* user_pointer);
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  u32 table_slot() const { return slot_; }
  ReceiveQueue& queue() { return queue_; }
  const ReceiveQueueLimits& limits() const { return queue_.limits(); }
  u32 limit() const { return limit_; }

  // kInvalidArgument: more than the depth.
  [[nodiscard]] Status set_limit(u32 limit);
  // kInvalidArgument: less than the limit, or than the WQEs in it.
  [[nodiscard]] Status resize(u32 depth);
  // True once when fewer WQEs are left than the armed limit. IBTA 10.2.9.3
  [[nodiscard]] bool take_limit_reached();

  ProtectionDomain& pd;
  void* const user;
  u32 users = 0;  // QPs
  EventSource events{.srq = this};

 private:
  u32 slot_;
  u32 limit_;
  ReceiveQueue queue_;  // the engines refer to it: resizing replaces its content, not the object
};

}  // namespace verbena
