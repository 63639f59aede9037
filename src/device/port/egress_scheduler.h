// EgressScheduler: the order in which QPs send. Round robin over the QPs that may have packets, up
// to run_packets in a turn: packets of one QP come in runs, which a link sends as one batch. QPs
// that are held to a rate (pacer.h) wait outside of it, but their pure acknowledgements are sent.
// A QP that has had a turn comes after all QPs whose time comes until the next turn: a packet takes
// its time to leave.
#pragma once

#include "device/device_config.h"
#include "device/qp/queue_pair.h"
#include "device/qp/timer_queue.h"

namespace verbena {

class EgressScheduler {
 public:
  explicit EgressScheduler(const EgressConfig& config)
      : config_(config), waiting_(&QueuePair::pacing_position) {}
  // Room for so many QPs to wait.
  void reserve(u32 qp_count) { waiting_.reserve(qp_count); }

  // The QP may have something to send. Its turn comes after those that wait already.
  void activate(QueuePair& qp) {
    if (&qp != served_) active_.push_back(qp);
  }
  // It may have a request to acknowledge.
  void on_request(QueuePair& qp) {
    if (config_.acknowledgements == AcknowledgementOrder::kFirst) acknowledging_.push_back(qp);
  }
  void remove(QueuePair& qp);
  // Until then it only acknowledges. Of several such times the last counts.
  void hold(QueuePair& qp, Time until) {
    qp.held_until = until;
    waiting_.update(qp, until);
  }
  [[nodiscard]] bool holds(const QueuePair& qp) const { return waiting_.contains(qp); }

  // Until resume() the QP only acknowledges. A rate may hold it besides.
  void pause(QueuePair& qp) { qp.send_paused = true; }
  void resume(QueuePair& qp) {
    qp.send_paused = false;
    activate(qp);
  }

  struct Turn {
    QueuePair* qp;  // nullptr if no QP wants a turn
    MaySend what;
  };
  [[nodiscard]] Turn turn(Time now);
  // Returns a turn of a QP that has something to acknowledge, with kFirst.
  [[nodiscard]] Turn acknowledging() const {
    return {acknowledging_.front(), MaySend::kAcknowledgements};
  }
  // The result of a turn:
  void on_sent(const Turn& turn, u32 packets);
  void on_idle(const Turn& turn);  // nothing left; it waits for the next activate()
  // Returns true if no QP wants a turn.
  [[nodiscard]] bool is_empty() const {
    return active_.empty() && acknowledging_.empty() && served_ == nullptr;
  }
  // Returns when the next held QP may send, or an earlier time; never() if none is held.
  [[nodiscard]] Time next_release() const { return waiting_.next(); }

 private:
  void release(Time now);
  void put_back_served();

  const EgressConfig config_;
  IntrusiveList<QueuePair, &QueuePair::sending> active_;
  IntrusiveList<QueuePair, &QueuePair::acknowledging> acknowledging_;  // kFirst
  TimerQueue waiting_;
  u32 sent_in_turn_ = 0;
  QueuePair* served_ = nullptr;  // has had the last turn, and is in no list
};

}  // namespace verbena
