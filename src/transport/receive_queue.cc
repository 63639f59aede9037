#include "transport/receive_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace verbena {

ReceiveQueue::ReceiveQueue(const ReceiveQueueLimits& limits)
    : limits_(limits),
      mask_(std::bit_ceil(u64{std::max(limits.depth, 1u)}) - 1),
      slots_(new Slot[mask_ + 1]),
      sges_(new SGE[(mask_ + 1) * std::max(limits.max_sge, 1u)]) {
  CHECK(limits.max_sge <= kMaxSGE);
}

PostError ReceiveQueue::push(const RecvWR& wr) {
  if (occupied_ >= limits_.depth) return PostError::kQueueFull;
  if (wr.sg_list.size() > limits_.max_sge) return PostError::kTooManySGEs;
  const u64 slot = tail_++ & mask_;
  slots_[slot] = {wr.wr_id, static_cast<u32>(wr.sg_list.size())};
  SGE* const to = sges_.get() + slot * std::max(limits_.max_sge, 1u);
  if (wr.sg_list.size() == 1)
    *to = wr.sg_list.front();
  else
    std::ranges::copy(wr.sg_list, to);
  ++occupied_;
  return PostError::kOk;
}

bool ReceiveQueue::take(ReceiveWQE& out) {
  if (empty()) return false;
  const u64 slot = head_++ & mask_;
  const SGE* from = sges_.get() + slot * std::max(limits_.max_sge, 1u);
  out.wr_id = slots_[slot].wr_id;
  out.sge_count = slots_[slot].sge_count;
  out.length_bytes = 0;
  for (u32 i = 0; i < out.sge_count; ++i) {
    out.sges[i] = from[i];
    out.length_bytes += from[i].length;
  }
  return true;
}

void ReceiveQueue::resize(u32 depth) {
  CHECK(depth >= occupied_);
  const u32 occupied = occupied_;
  ReceiveQueue resized({.depth = depth, .max_sge = limits_.max_sge});
  ReceiveWQE wqe;
  while (take(wqe)) {
    const PostError moved = resized.push({.wr_id = wqe.wr_id, .sg_list = wqe.sg_list()});
    CHECK(moved == PostError::kOk);
  }
  *this = std::move(resized);
  occupied_ = occupied;
}

}  // namespace verbena
