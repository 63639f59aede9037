#include "device/completion_queue.h"

#include <algorithm>
#include <bit>

namespace verbena {

CompletionQueue::CompletionQueue(u32 slot, u32 capacity, void* user_pointer)
    : user(user_pointer),
      slot_(slot),
      capacity_(capacity),
      mask_(std::bit_ceil(u64{capacity}) - 1),
      slots_(allocate(capacity)) {}

std::unique_ptr<CompletionQueue::Slot[]> CompletionQueue::allocate(u32 capacity) {
  return std::unique_ptr<Slot[]>(new Slot[std::bit_ceil(u64{capacity})]);
}

CQPush CompletionQueue::push(const CQE& cqe) {
  if (overrun_) return CQPush::kDropped;
  if (size() == capacity_) {
    overrun_ = true;
    return CQPush::kOverrun;
  }
  at(tail_++) = cqe;
  return take_notification(cqe) ? CQPush::kNotificationDue : CQPush::kAdded;
}

bool CompletionQueue::take_notification(const CQE& cqe) {
  const bool fits = armed_ == Armed::kAny || (armed_ == Armed::kSolicited &&
                                              (cqe.solicited || cqe.status != WQEStatus::kSuccess));
  if (fits) armed_ = Armed::kNot;
  return fits;
}

u32 CompletionQueue::poll(std::span<CQE> out) {
  const u32 count = static_cast<u32>(std::min<std::size_t>(size(), out.size()));
  for (u32 i = 0; i < count; ++i) out[i] = at(head_ + i);
  head_ += count;
  return count;
}

void CompletionQueue::request_notification(NotifyOn on) {
  if (on == NotifyOn::kAnyCompletion) {
    armed_ = Armed::kAny;
  } else if (armed_ == Armed::kNot) {
    armed_ = Armed::kSolicited;
  }
}

Status CompletionQueue::resize(u32 capacity) {
  const u32 count = size();
  if (capacity < count) return Status::kInvalidArgument;
  std::unique_ptr<Slot[]> slots = allocate(capacity);
  for (u32 i = 0; i < count; ++i) slots[i].cqe = at(head_ + i);
  slots_ = std::move(slots);
  capacity_ = capacity;
  mask_ = std::bit_ceil(u64{capacity}) - 1;
  head_ = 0;
  tail_ = count;
  return Status::kOk;
}

void CompletionQueue::remove(QPN qpn) {
  u64 kept = head_;
  for (u64 i = head_; i != tail_; ++i)
    if (at(i).qp != qpn) at(kept++) = at(i);
  tail_ = kept;
}

}  // namespace verbena
