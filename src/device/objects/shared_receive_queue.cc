#include "device/objects/shared_receive_queue.h"

#include "base/check.h"

namespace verbena {

SharedReceiveQueue::SharedReceiveQueue(u32 slot, u8 generation, const SRQInit& granted)
    : pd(*granted.pd),
      xrcd(granted.xrcd),
      cq(granted.cq),
      user(granted.user),
      slot_(slot),
      generation_(generation),
      queue_(granted.limits) {
  CHECK(generation != 0 && slot == slot_of_srq_number(slot));
}

Status SharedReceiveQueue::modify(const SRQModify& change) {
  const u32 depth = change.depth.value_or(limits().depth);
  const u32 limit = change.limit.value_or(limit_);
  if (depth < limit || depth < queue_.occupied()) return Status::kInvalidArgument;
  if (depth != limits().depth) queue_.resize(depth);
  limit_ = limit;
  return Status::kOk;
}

bool SharedReceiveQueue::take_limit_reached() {
  if (limit_ == 0 || queue_.size() >= limit_) return false;
  limit_ = 0;
  return true;
}

}  // namespace verbena
