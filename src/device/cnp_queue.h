// CNPQueue: the QPs that owe their peer a CNP, because packets of its came with a congestion mark.
// A17.9.3; the notification point of DCQCN sends at most one per QP and interval (SIGCOMM
// 2015, 3.1).
#pragma once

#include "device/queue_pair.h"

namespace verbena {

inline constexpr Duration kCNPInterval = us(50);

class CNPQueue {
 public:
  void on_marked(QueuePair& qp, Time now);
  void forget(QueuePair& qp) { due_.remove(qp); }
  [[nodiscard]] QueuePair* pop() { return due_.pop_front(); }  // nullptr: none

 private:
  IntrusiveList<QueuePair, &QueuePair::cnp_due> due_;
};

}  // namespace verbena
