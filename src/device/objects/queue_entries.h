// QueueEntries: finds the work queue that a CQE belongs to and frees the entries that it reports.
// The device calls it when the program polls the CQE, and when a CQE is lost.
#pragma once

#include <span>

#include "device/objects/object_table.h"
#include "device/objects/shared_receive_queue.h"
#include "device/qp/qp_table.h"

namespace verbena {

class QueueEntries {
 public:
  // Both outlive it.
  QueueEntries(const QPTable& qps, const ObjectTable<SharedReceiveQueue>& srqs)
      : qps_(qps), srqs_(srqs) {}

  // Each CQE is given once. A queue that has been destroyed since is skipped.
  void free(std::span<const CQE> cqes) const;

 private:
  void free_receive(const CQE& cqe) const;
  void free_sends(QPN qpn, u32 count) const;

  const QPTable& qps_;
  const ObjectTable<SharedReceiveQueue>& srqs_;
};

}  // namespace verbena
