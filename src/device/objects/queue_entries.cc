#include "device/objects/queue_entries.h"

namespace verbena {

// CQEs of one QP often follow each other, so their counts are added up first.
void QueueEntries::free(std::span<const CQE> cqes) const {
  QPN qpn{};
  u32 sends = 0;
  for (const CQE& cqe : cqes) {
    if (is_receive(cqe.op)) {
      free_receive(cqe);
      continue;
    }
    if (cqe.qp != qpn) {
      free_sends(qpn, sends);
      qpn = cqe.qp;
      sends = 0;
    }
    sends += cqe.entries;
  }
  free_sends(qpn, sends);
}

void QueueEntries::free_sends(QPN qpn, u32 count) const {
  if (count == 0) return;
  if (QueuePair* const qp = qps_.find(qpn); qp != nullptr) qp->engine->free_sends(count);
}

// A receive of XRC names its SRQ, which may outlive the QP.
void QueueEntries::free_receive(const CQE& cqe) const {
  if (cqe.srq != 0) {
    SharedReceiveQueue* const srq = srqs_.find(slot_of_srq_number(cqe.srq));
    if (srq != nullptr && srq->number() == cqe.srq) srq->queue().free_entries(cqe.entries);
    return;
  }
  QueuePair* const qp = qps_.find(cqe.qp);
  if (qp == nullptr) return;
  if (qp->init.srq != nullptr)
    qp->init.srq->queue().free_entries(cqe.entries);
  else if (qp->own_receive_queue.has_value())
    qp->own_receive_queue->free_entries(cqe.entries);
}

}  // namespace verbena
