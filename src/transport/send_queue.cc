#include "transport/send_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "memory/touch.h"

namespace verbena {

SendQueue::SendQueue(const SendQueueLimits& limits, Addressing addressing)
    : limits_(limits),
      mask_(std::bit_ceil(u64{std::max(limits.depth, 1u)}) - 1),
      slots_(new Slot[mask_ + 1]),
      sges_(new SGE[(mask_ + 1) * std::max(limits.max_sge, 1u)]),
      inline_(new u8[(mask_ + 1) * limits.max_inline_bytes]),
      destinations_(addressing == Addressing::kOfRequest ? new Destination[mask_ + 1] : nullptr) {
  CHECK(limits.max_sge <= kMaxSGE);
}

void SendQueue::take_back(u32 count) {
  CHECK(count <= tail_ - head_);
  tail_ -= count;
  occupied_ -= count;
}

namespace {

// Returns the bytes of the message, or more than kMaxMessageSize if it is too long.
u64 message_length(std::span<const SGE> sg_list) {
  u64 total = 0;
  for (const SGE& sge : sg_list) total += sge.length;
  return total;
}

// Returns false if the CPU cannot read all of the list. memcpy() takes no null pointer.
bool copy_inline(std::span<const SGE> list, u8* to) {
  const auto is_null = [](const SGE& sge) { return sge.address == 0 && sge.length != 0; };
  if (std::ranges::any_of(list, is_null)) return false;
  return touch([list, to] {
    u8* at = to;
    for (const SGE& sge : list) {
      if (sge.length != 0) std::memcpy(at, reinterpret_cast<const void*>(sge.address), sge.length);
      at += sge.length;
    }
  });
}

}  // namespace

PostError SendQueue::push(const SendWR& wr, Time now) {
  if (occupied_ >= limits_.depth) return PostError::kQueueFull;
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
    u8* const bytes = inline_.get() + slot * limits_.max_inline_bytes;
    if (!copy_inline(wr.sg_list, bytes)) return PostError::kUnreadable;
    wqe.inline_bytes = bytes;
  }
  wqe.wr.sg_list = wr.inline_data ? std::span<const SGE>{} : copy_list(slot, wr.sg_list);
  wqe.ud = destinations_ ? copy_destination(slot, wr) : nullptr;
  wqe.binding = wr.op == SendOp::kBindMW ? copy_binding(slot, wr) : nullptr;
  ++tail_;
  ++occupied_;
  return PostError::kOk;
}

std::span<const SGE> SendQueue::copy_list(u64 slot, std::span<const SGE> list) {
  SGE* const to = sges_.get() + slot * std::max(limits_.max_sge, 1u);
  if (list.size() == 1)
    *to = list.front();
  else
    std::ranges::copy(list, to);
  return {to, list.size()};
}

const UDDestination* SendQueue::copy_destination(u64 slot, const UDDestination& destination) {
  destinations_[slot].ud = destination;
  return &destinations_[slot].ud;
}

const WindowBinding* SendQueue::copy_binding(u64 slot, const WindowBinding& binding) {
  if (!bindings_) bindings_ = std::make_unique<WindowBinding[]>(mask_ + 1);
  bindings_[slot] = binding;
  return &bindings_[slot];
}

}  // namespace verbena
