// SharedReceiveQueue: receive WQEs that many QPs draw from. IBTA Vol 1, 10.2.9, 11.2.3.
// An XRC SRQ also has a domain and a CQ (Annex A14).
// Invariant: the limit event is raised at most once per armed limit; it disarms the limit (to 0).
#pragma once

#include "base/status.h"
#include "device/objects/event_queue.h"
#include "device/objects/srq_init.h"

namespace verbena {

// A number is 8 bits that change with each SRQ, so that one which is gone is not taken for its
// successor, and the 16 bits of its place in the device's table. Never 0.
inline constexpr u32 kSRQSlotBits = 16;
constexpr u32 slot_of_srq_number(u32 number) { return number & ((1u << kSRQSlotBits) - 1); }

class SharedReceiveQueue {
 public:
  // `generation`: not 0. `granted`: with the limits as granted.
  SharedReceiveQueue(u32 slot, u8 generation, const SRQInit& granted);
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  u32 table_slot() const { return slot_; }
  u32 number() const { return u32{generation_} << kSRQSlotBits | slot_; }  // 24 bits
  ReceiveQueue& queue() { return queue_; }
  const ReceiveQueueLimits& limits() const { return queue_.limits(); }
  u32 limit() const { return limit_; }

  // kInvalidArgument, and nothing changes: the depth would be less than the limit, or than the
  // entries that are not free.
  [[nodiscard]] Status modify(const SRQModify& change);
  // True once when fewer WQEs are left than the armed limit. IBTA 10.2.9.3
  [[nodiscard]] bool take_limit_reached();

  ProtectionDomain& pd;
  XRCDomain* const xrcd;      // nullptr if not XRC
  CompletionQueue* const cq;  // XRC only
  void* const user;
  u32 users = 0;  // QPs
  EventSource events{.srq = this};

 private:
  u32 slot_;
  u8 generation_;
  u32 limit_ = 0;
  ReceiveQueue queue_;  // the engines refer to it: resizing replaces its content, not the object
};

}  // namespace verbena
