// EgressScheduler: whose turn it is to send. Round robin over the QPs that may have packets, up to
// kQuantumPackets in a turn: packets of one QP come in runs, which a link sends as one batch.
#pragma once

#include "device/queue_pair.h"

namespace verbena {

class EgressScheduler {
 public:
  static constexpr u32 kQuantumPackets = 32;

  // The QP may have something to send. Its turn comes after those that wait already.
  void activate(QueuePair& qp) { active_.push_back(qp); }
  void remove(QueuePair& qp);

  [[nodiscard]] QueuePair* current() const { return active_.front(); }  // nullptr: nobody
  // What current() did with its turn:
  void on_sent();  // one packet
  void on_idle();  // nothing left; it waits for the next activate()

 private:
  IntrusiveList<QueuePair, &QueuePair::sending> active_;
  u32 sent_in_turn_ = 0;
};

}  // namespace verbena
