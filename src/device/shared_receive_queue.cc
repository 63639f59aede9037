#include "device/shared_receive_queue.h"

#include <utility>

#include "base/check.h"

namespace verbena {

SharedReceiveQueue::SharedReceiveQueue(u32 slot, u8 generation, const SRQInit& granted)
    : pd(*granted.pd),
      xrcd(granted.xrcd),
      cq(granted.cq),
      user(granted.user),
      slot_(slot),
      generation_(generation),
      limit_(granted.limit),
      queue_(granted.limits) {
  CHECK(generation != 0 && slot == slot_of_srq_number(slot));
}

Status SharedReceiveQueue::set_limit(u32 limit) {
  if (limit > limits().depth) return Status::kInvalidArgument;
  limit_ = limit;
  return Status::kOk;
}

Status SharedReceiveQueue::resize(u32 depth) {
  if (depth < limit_ || depth < queue_.size()) return Status::kInvalidArgument;
  ReceiveQueue resized({.depth = depth, .max_sge = limits().max_sge});
  ReceiveWQE wqe;
  while (queue_.take(wqe)) {
    const PostError moved = resized.push({.wr_id = wqe.wr_id, .sg_list = wqe.sg_list()});
    CHECK(moved == PostError::kOk);
  }
  queue_ = std::move(resized);
  return Status::kOk;
}

bool SharedReceiveQueue::take_limit_reached() {
  if (limit_ == 0 || queue_.size() >= limit_) return false;
  limit_ = 0;
  return true;
}

}  // namespace verbena
