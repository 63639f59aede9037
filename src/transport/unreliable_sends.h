// UnreliableSends: how UC and UD requesters process the send queue: in order, one WQE at a time,
// each complete as soon as its last packet is polled. IBTA Vol 1, 9.8 (unreliable service), 10.3.1
// (states): RTS transmits; SQD ends the message that has begun and starts none; an error stops the
// queue and requests SQE; SQE and Error flush.
//   [ completed: CQE not yet polled | being transmitted or failed | waiting ]
//   begin_index()                   next_                                   end_index()
// Invariant: no allocation after construction but the queue's (send_queue.h). A CQE needs no memory
// of its own: it is made from its WQE when polled.
#pragma once

#include <optional>

#include "transport/datagram_engine.h"
#include "transport/send_queue.h"

namespace verbena {

class UnreliableSends {
 public:
  UnreliableSends(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault,
                  Addressing addressing = Addressing::kOfQP);

  // The service checks operation and length. Reset, Init and RTR accept no sends.
  [[nodiscard]] PostError post(const SendWR& wr, Time now);
  void take_back(u32 count) { queue_.take_back(count); }  // just posted
  void free_sends(u32 count) { queue_.free_entries(count); }
  void on_state(QPState from);

  // Returns the WQE of the next packet, which counts as begun; nullptr if there is nothing to
  // transmit now. Executes local operations that come first.
  [[nodiscard]] const SendWQE* current();
  // The current WQE's last packet is made, or the WQE has failed. After a failure nothing is
  // transmitted until the device has changed the state.
  void finish(WQEStatus status);

  [[nodiscard]] bool poll_cqe(CQE& out);
  [[nodiscard]] std::optional<EngineEvent> poll_event();
  [[nodiscard]] bool is_draining() const { return draining_; }

 private:
  bool may_transmit() const;
  std::optional<WQEStatus> status_of_oldest() const;
  void retire_oldest();
  void forget();

  const QPAttributes& qp_;
  ProtectionTable& memory_;
  EngineCounters& counters_;
  RequesterFault& fault_;
  SendQueue queue_;
  u64 next_ = 0;                             // index of the current WQE
  bool begun_ = false;                       // some packet of it may be out
  bool halted_ = false;                      // after a failure, until on_state()
  bool draining_ = false;                    // SQD entered, kSQDrained not yet told
  WQEStatus failure_ = WQEStatus::kSuccess;  // of the current WQE
  bool error_event_ = false;
};

}  // namespace verbena
