// SendQueue: the bounded ring of posted send WQEs of one QP, with their SGEs and inline bytes.
//
// An entry is free again when the program has polled the CQE that reports its WQE, not when the WQE
// completes. Cards do the same, and programs use a full queue as their flow control: a queue of n
// entries never has more than n CQEs in its CQ. All memory is allocated at construction (untouched
// pages cost nothing), except for windows: the first bind allocates it for all of them, since few
// QPs ever use one. Posting copies. A running index of 64 bits, which never wraps in practice,
// names a WQE.
#pragma once

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/psn.h"
#include "base/time.h"
#include "transport/work_request.h"

namespace verbena {

// Its pointers, and that of wr.sg_list, are into the queue's own storage.
struct SendWQE {
  SendRequest wr;
  const u8* inline_bytes = nullptr;        // set when wr.inline_data
  const UDDestination* ud = nullptr;       // set when each request has its own
  const WindowBinding* binding = nullptr;  // set for kBindMW
  Time posted;
  u32 length_bytes = 0;  // of the whole message (READ: to be read; atomics: 8)
  // Filled when transmission starts:
  u32 packets = 0;          // PSNs taken (READ: of its responses); 0: a local operation
  PSN first_psn, last_psn;  // valid if packets != 0
};
static_assert(sizeof(SendWQE) <= 128, "two cache lines");

enum class Addressing : u8 { kOfQP, kOfRequest };  // connected; UD

struct SendQueueLimits {
  u32 depth = 0;             // WQEs
  u32 max_sge = 1;           // per WQE, at most kMaxSGE
  u32 max_inline_bytes = 0;  // per WQE
};

class SendQueue {
 public:
  explicit SendQueue(const SendQueueLimits& limits, Addressing addressing = Addressing::kOfQP);

  const SendQueueLimits& limits() const { return limits_; }
  // Copies the request in. kQueueFull, kTooManySGEs, kInlineTooLong, kMessageTooLong.
  [[nodiscard]] PostError push(const SendWR& wr, Time now);
  // Removes the last `count` pushed.
  void take_back(u32 count);
  // The program has polled CQEs that report so many entries.
  void free_entries(u32 count) {
    CHECK(count <= occupied_);
    occupied_ -= count;
  }

  u64 begin_index() const { return head_; }
  u64 end_index() const { return tail_; }
  bool empty() const { return head_ == tail_; }
  SendWQE& at(u64 index) {  // begin_index() <= index < end_index()
    CHECK(index - head_ < tail_ - head_);
    return slots_[index & mask_].wqe;
  }
  SendWQE& front() { return at(head_); }
  void pop_front() {
    CHECK(!empty());
    ++head_;
    ++unreported_;
  }
  // Returns how many entries the next CQE reports: all that were popped since the CQE before.
  [[nodiscard]] u32 take_unreported() { return std::exchange(unreported_, 0); }
  void clear() {
    head_ = tail_;
    occupied_ = unreported_ = 0;
  }

 private:
  union Slot {  // left uninitialized: unused slots cost no memory
    SendWQE wqe;
    Slot() {}
  };
  union Destination {  // uninitialized, too
    UDDestination ud;
    Destination() {}
  };
  std::span<const SGE> copy_list(u64 slot, std::span<const SGE> list);
  const UDDestination* copy_destination(u64 slot, const UDDestination& destination);
  const WindowBinding* copy_binding(u64 slot, const WindowBinding& binding);

  SendQueueLimits limits_;
  u64 mask_;
  u64 head_ = 0, tail_ = 0;
  u32 occupied_ = 0;    // entries that are not free; at least tail_ - head_
  u32 unreported_ = 0;  // of them, those that were popped without a CQE so far
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<SGE[]> sges_;
  std::unique_ptr<u8[]> inline_;
  std::unique_ptr<Destination[]> destinations_;  // kOfRequest
  std::unique_ptr<WindowBinding[]> bindings_;    // allocated with the first bind
};

}  // namespace verbena
