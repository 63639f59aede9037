// ReceiveQueue: the bounded ring of posted receive WQEs of one QP, or of an SRQ that many QPs
// share. A responder takes a WQE out whole (copy) when a message starts to use it. IBTA Vol
// 1, 10.8.2, 10.2.9. As in a SendQueue, an entry is free again when its CQE has been polled.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "transport/work_request.h"

namespace verbena {

struct ReceiveWQE {
  u64 wr_id = 0;
  u32 sge_count = 0;
  u64 length_bytes = 0;  // room in all SGEs
  std::array<SGE, kMaxSGE> sges;
  std::span<const SGE> sg_list() const { return {sges.data(), sge_count}; }
};

struct ReceiveQueueLimits {
  u32 depth = 0;
  u32 max_sge = 1;
};

class ReceiveQueue {
 public:
  explicit ReceiveQueue(const ReceiveQueueLimits& limits);

  const ReceiveQueueLimits& limits() const { return limits_; }
  [[nodiscard]] PostError push(const RecvWR& wr);  // kQueueFull, kTooManySGEs
  // Takes the oldest into `out`. Returns false if the queue is empty.
  [[nodiscard]] bool take(ReceiveWQE& out);
  // Removes the oldest and returns its wr_id: for flushing, or when its element has been used.
  // Precondition: the queue is not empty.
  u64 pop_wr_id() {
    CHECK(!empty());
    return slots_[head_++ & mask_].wr_id;
  }
  // Returns the only element of the oldest; nullptr if it has none or several, or the queue is
  // empty.
  [[nodiscard]] const SGE* front_sge() const {
    const u64 slot = head_ & mask_;
    if (empty() || slots_[slot].sge_count != 1) return nullptr;
    return sges_.get() + slot * std::max(limits_.max_sge, 1u);
  }

  // The program has polled the CQEs of so many WQEs, or there will be none.
  void free_entries(u32 count) {
    CHECK(count <= occupied_);
    occupied_ -= count;
  }
  // Moves the WQEs to a queue of another depth, not less than occupied().
  void resize(u32 depth);

  u32 size() const { return static_cast<u32>(tail_ - head_); }  // WQEs that no message has taken
  u32 occupied() const { return occupied_; }                    // entries that are not free
  bool empty() const { return head_ == tail_; }
  void clear() {
    head_ = tail_;
    occupied_ = 0;
  }

 private:
  struct Slot {
    u64 wr_id;
    u32 sge_count;
  };
  ReceiveQueueLimits limits_;
  u64 mask_;
  u64 head_ = 0, tail_ = 0;
  u32 occupied_ = 0;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<SGE[]> sges_;
};

}  // namespace verbena
