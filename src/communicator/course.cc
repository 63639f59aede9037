#include "communicator/course.h"

namespace verbena::coll {

void Course::begin(u32 ranks, u32 lanes) {
  lanes_ = lanes;
  inboxes_.resize(u64{ranks} * lanes);
  for (Inbox& box : inboxes_) {
    box.arrivals.clear();
    box.is_awaited = false;
  }
  to_self_.resize(lanes);
  for (auto& own : to_self_) own.clear();
  bases_.assign(lanes, {});
  blocked.clear();
}

}  // namespace verbena::coll
