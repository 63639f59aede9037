#include "fabric/pcie_path.h"

namespace verbena::fabric {

bool PCIePath::take_postings(Device& device, Time now) {
  if (postings_.empty() || postings_.front().at > now) return false;
  for (; !postings_.empty() && postings_.front().at <= now; postings_.pop_front()) {
    Posting& posting = postings_.front();
    if (!posting.wr.sg_list.empty()) posting.wr.sg_list = {&posting.sge, 1};
    CHECK(device.post_send(posting.qp, posting.wr, now) == PostError::kOk);
  }
  return true;
}

}  // namespace verbena::fabric
