// UnreliableReceives: the receive WQE that a UC, UD or iWARP responder fills, and the receive
// completions.
// IBTA Vol 1, 9.9.3.1 (responder faults), 10.3.1.7 (flush), 10.2.9 (SRQ).
// A message that is dropped after it has taken a WQE leaves it like this:
//   own queue: the WQE stays held and serves the next message (class D: silent)
//   SRQ:       the WQE cannot go back, and completes in error; the QP lives on (class E)
// A WQE that cannot be written is the application's fault: it completes in error and the QP goes to
// Error (class A).
// Invariant: no allocation after construction. Completions leave room for one packet's worth: the
// Engine contract has them polled after each.
#pragma once

#include <optional>

#include "base/ring.h"
#include "transport/datagram_engine.h"

namespace verbena {

class UnreliableReceives {
 public:
  UnreliableReceives(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault);

  void on_state(QPState from);
  // A packet may be taken: the state has a working receive side and no class A fault is pending.
  [[nodiscard]] bool accepting() const;

  // Holds a WQE from now on, if it did not already. false: none is posted.
  [[nodiscard]] bool acquire();
  [[nodiscard]] const ReceiveWQE& held() const { return held_; }
  // Copies to the held WQE's memory. false: refused, and everything a class A fault asks for is
  // done.
  [[nodiscard]] bool write(u64 offset, Bytes data);
  // The held WQE completes. wr_id and qp are filled in here.
  void complete(CQE cqe);
  // The current message is dropped; `srq_status` is what a class E completion says.
  void abandon(WQEStatus srq_status);

  // The held WQE completes in error. iWARP, where an error of a message ends the stream.
  void fail(WQEStatus status);

  // Frees the receives of an SRQ that were taken and will not complete here: the QP goes.
  void give_back();

  [[nodiscard]] bool poll_cqe(CQE& out);
  [[nodiscard]] std::optional<EngineEvent> poll_event();

 private:
  static constexpr std::size_t kCQEsPerPacket = 2;  // one message dropped, the next one complete

  bool poll_flushed(CQE& out);

  const QPAttributes& qp_;
  const ProtectionTable& memory_;
  ReceiveQueue& queue_;
  bool shared_;
  std::optional<PDId> srq_pd_;
  EngineCounters& counters_;
  ResponderFault& fault_;
  Ring<CQE> cqes_{kCQEsPerPacket};
  bool holding_ = false;
  ReceiveWQE held_;
  bool halted_ = false;  // after a class A fault, until on_state()
  bool fatal_event_ = false;
};

}  // namespace verbena
