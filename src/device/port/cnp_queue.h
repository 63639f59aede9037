// CNPQueue: the QPs that owe their peer a CNP, because packets of its came with a congestion mark.
// A17.9.3; the notification point of DCQCN sends at most one per QP and interval (SIGCOMM
// 2015, 3.1).
#pragma once

#include "congestion/dcqcn/parameters.h"
#include "device/qp/queue_pair.h"

namespace verbena {

class CNPQueue {
 public:
  explicit CNPQueue(const NotificationParameters& parameters) : parameters_(parameters) {}

  void on_marked(QueuePair& qp, Time now);
  void forget(QueuePair& qp) { due_.remove(qp); }
  [[nodiscard]] bool empty() const { return due_.empty(); }
  [[nodiscard]] QueuePair* pop() { return due_.pop_front(); }  // nullptr if there is none

 private:
  const NotificationParameters parameters_;
  IntrusiveList<QueuePair, &QueuePair::cnp_due> due_;
};

}  // namespace verbena
