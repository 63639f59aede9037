#include "device/egress_scheduler.h"

namespace verbena {

void EgressScheduler::remove(QueuePair& qp) {
  if (&qp == current()) sent_in_turn_ = 0;
  active_.remove(qp);
}

void EgressScheduler::on_sent() {
  if (++sent_in_turn_ < kQuantumPackets) return;
  QueuePair* const qp = current();
  on_idle();
  active_.push_back(*qp);
}

void EgressScheduler::on_idle() {
  CHECK(!active_.empty());
  active_.pop_front();
  sent_in_turn_ = 0;
}

}  // namespace verbena
