#include "device/port/cnp_queue.h"

namespace verbena {

void CNPQueue::on_marked(QueuePair& qp, Time now) {
  if (now < qp.next_cnp_allowed) return;
  qp.next_cnp_allowed = now + parameters_.cnp_interval;
  due_.push_back(qp);
}

}  // namespace verbena
