#include "transport/send_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace verbena {

SendQueue::SendQueue(const SendQueueLimits& limits)
    : limits_(limits),
      mask_(std::bit_ceil(u64{std::max(limits.depth, 1u)}) - 1),
      slots_(new Slot[mask_ + 1]),
      sges_(new SGE[(mask_ + 1) * std::max(limits.max_sge, 1u)]),
      inline_(new u8[(mask_ + 1) * limits.max_inline_bytes]) {
  CHECK(limits.max_sge <= kMaxSGE);
}

void SendQueue::take_back(u32 count) {
  CHECK(count <= tail_ - head_);
  tail_ -= count;
}

namespace {

// Bytes of the message, or more than kMaxMessageSize when it is too long.
u64 message_length(std::span<const SGE> sg_list) {
  u64 total = 0;
  for (const SGE& sge : sg_list) total += sge.length;
  return total;
}

}  // namespace

PostError SendQueue::push(const SendWR& wr, Time now) {
  if (tail_ - head_ >= limits_.depth) return PostError::kQueueFull;
  const u64 length = message_length(wr.sg_list);
  if (wr.inline_data) {
    if (length > limits_.max_inline_bytes) return PostError::kInlineTooLong;
  } else if (wr.sg_list.size() > limits_.max_sge) {
    return PostError::kTooManySGEs;
  }
  if (length > kMaxMessageSize) return PostError::kMessageTooLong;

  const u64 slot = tail_ & mask_;
  SendWQE& wqe = slots_[slot].wqe;
  wqe.wr = wr;
  wqe.packets = 0;
  wqe.length_bytes = static_cast<u32>(length);
  wqe.posted = now;
  wqe.inline_bytes = nullptr;
  if (wr.inline_data) {
    u8* to = inline_.get() + slot * limits_.max_inline_bytes;
    wqe.inline_bytes = to;
    for (const SGE& sge : wr.sg_list) {
      if (sge.length != 0) std::memcpy(to, reinterpret_cast<const void*>(sge.address), sge.length);
      to += sge.length;
    }
    wqe.wr.sg_list = {};
  } else {
    SGE* to = sges_.get() + slot * std::max(limits_.max_sge, 1u);
    std::copy(wr.sg_list.begin(), wr.sg_list.end(), to);
    wqe.wr.sg_list = {to, wr.sg_list.size()};
  }
  ++tail_;
  return PostError::kOk;
}

}  // namespace verbena
