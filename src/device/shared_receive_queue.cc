#include "device/shared_receive_queue.h"

#include <utility>

#include "base/check.h"

namespace verbena {

SharedReceiveQueue::SharedReceiveQueue(u32 slot, ProtectionDomain& domain,
                                       const ReceiveQueueLimits& limits, u32 limit,
                                       void* user_pointer)
    : pd(domain), user(user_pointer), slot_(slot), limit_(limit), queue_(limits) {}

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
