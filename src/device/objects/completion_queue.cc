#include "device/objects/completion_queue.h"

#include <algorithm>
#include <bit>

namespace verbena {

CompletionQueue::CompletionQueue(u32 slot, u32 capacity, void* user_pointer, OnOverrun on_overrun)
    : user(user_pointer),
      slot_(slot),
      capacity_(capacity),
      mask_(std::bit_ceil(u64{capacity}) - 1),
      on_overrun_(on_overrun),
      slots_(allocate(capacity)) {}

std::unique_ptr<CompletionQueue::Slot[]> CompletionQueue::allocate(u32 capacity) {
  return std::unique_ptr<Slot[]>(new Slot[std::bit_ceil(u64{capacity})]);
}

CQPush CompletionQueue::push() {
  if (overrun_) return CQPush::kDropped;
  if (size() == capacity_) {
    if (on_overrun_ == OnOverrun::kFail) {
      overrun_ = true;
      return CQPush::kOverrun;
    }
    ++head_;
  }
  return notify(at(tail_++));
}

bool CompletionQueue::fits(const CQE& cqe) const {
  return armed_ == Armed::kAny ||
         (armed_ == Armed::kSolicited && (cqe.solicited || cqe.status != WQEStatus::kSuccess));
}

CQPush CompletionQueue::notify(const CQE& cqe) {
  if (!fits(cqe)) return CQPush::kAdded;
  if (moderation_.is_on() && ++moderated_ < moderation_.count) {
    if (moderated_ != 1) return CQPush::kAdded;
    first_moderated_ = cqe.completed_at;
    return CQPush::kNotificationLater;
  }
  armed_ = Armed::kNot;
  return CQPush::kNotificationDue;
}

Time CompletionQueue::notification_deadline() const {
  if (armed_ == Armed::kNot || moderated_ == 0) return Time::never();
  return first_moderated_ + moderation_.period;
}

u32 CompletionQueue::poll(std::span<CQE> out) {
  const u32 count = static_cast<u32>(std::min<std::size_t>(size(), out.size()));
  if (count == 0) return 0;
  for (u32 i = 0; i < count; ++i) out[i] = at(head_ + i);
  head_ += count;
  leftovers_ -= std::min(leftovers_, count);
  if (head_ == tail_) head_ = tail_ = 0;  // so that what is emptied often stays in few cache lines
  return count;
}

bool CompletionQueue::request_notification(NotifyOn on, Time now) {
  if (armed_ == Armed::kNot) moderated_ = 0;
  if (on == NotifyOn::kAnyCompletion) {
    armed_ = Armed::kAny;
  } else if (armed_ == Armed::kNot) {
    armed_ = Armed::kSolicited;
  }
  requested_at_ = now;
  leftovers_ = find_leftovers();
  return leftovers_ != 0;
}

u32 CompletionQueue::find_leftovers() {
  u32 count = size();
  while (count != 0 && !fits(at(head_ + count - 1))) --count;
  return count;
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

u32 CompletionQueue::remove(QPN qpn) {
  u64 kept = head_;
  u32 receives = 0;
  for (u64 i = head_; i != tail_; ++i) {
    if (at(i).qp != qpn)
      at(kept++) = at(i);
    else if (is_receive(at(i).op))
      receives += at(i).entries;
  }
  tail_ = kept;
  leftovers_ = std::min(leftovers_, size());
  return receives;
}

}  // namespace verbena
