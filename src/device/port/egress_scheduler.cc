#include "device/port/egress_scheduler.h"

#include <utility>

namespace verbena {

void EgressScheduler::remove(QueuePair& qp) {
  if (&qp == active_.front()) sent_in_turn_ = 0;
  if (&qp == served_) served_ = nullptr;
  active_.remove(qp);
  acknowledging_.remove(qp);
  waiting_.remove(qp);
}

EgressScheduler::Turn EgressScheduler::turn(Time now) {
  if (waiting_.next() <= now) release(now);
  put_back_served();
  if (QueuePair* const qp = acknowledging_.front(); qp != nullptr)
    return {qp, MaySend::kAcknowledgements};
  QueuePair* const qp = active_.front();
  const bool is_held = qp != nullptr && (qp->send_paused || waiting_.contains(*qp));
  return {qp, is_held ? MaySend::kAcknowledgements : MaySend::kAnything};
}

void EgressScheduler::release(Time now) {
  while (QueuePair* const qp = waiting_.pop_due(now)) {
    if (qp->held_until > now)
      waiting_.update(*qp, qp->held_until);
    else
      active_.push_back(*qp);
  }
}

void EgressScheduler::put_back_served() {
  if (served_ != nullptr) active_.push_back(*std::exchange(served_, nullptr));
}

void EgressScheduler::on_sent(const Turn& turn, u32 packets) {
  if (turn.qp == acknowledging_.front()) return;
  sent_in_turn_ += packets;
  if (sent_in_turn_ < config_.run_packets) return;
  on_idle(turn);
  put_back_served();
  served_ = turn.qp;
}

void EgressScheduler::on_idle(const Turn& turn) {
  if (turn.qp == acknowledging_.front()) {
    acknowledging_.remove(*turn.qp);
    return;
  }
  CHECK(turn.qp == active_.front());
  active_.pop_front();
  sent_in_turn_ = 0;
}

}  // namespace verbena
