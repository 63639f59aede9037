// UnreliableReceives: the receive WQE that a UC, UD or iWARP responder fills, and the receive
// completions.
// IBTA Vol 1, 9.9.3.1 (responder faults), 10.3.1.7 (flush), 10.2.9 (SRQ).
// A message that is dropped after it has taken a WQE has this effect:
//   own queue: the WQE stays held and serves the next message (class D: silent)
//   SRQ:       the WQE cannot go back, and completes in error; the QP continues (class E)
// A WQE that cannot be written is an error of the application: it completes in error and the QP
// enters Error (class A).
// Invariant: no allocation after construction. Completions leave room for one packet's worth: by
// the Engine contract they are polled after each packet.
#pragma once

#include <optional>

#include "base/ring.h"
#include "transport/datagram_engine.h"

namespace verbena {

class UnreliableReceives {
 public:
  UnreliableReceives(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault);

  void on_state(QPState from);
  // Returns true if a packet may be accepted: the state has a working receive side and no class A
  // fault is pending.
  [[nodiscard]] bool accepting() const;

  // Holds a WQE from now on, if it did not already. Returns false if none is posted.
  [[nodiscard]] bool acquire();
  [[nodiscard]] const ReceiveWQE& held() const { return held_; }
  // Copies to the held WQE's memory. Returns false if the copy cannot begin now (the packet counts
  // as lost), or if it was refused; then the actions of a class A fault are done.
  [[nodiscard]] bool write(u64 offset, Bytes data);
  // Completes the held WQE. wr_id and qp are filled in here.
  void complete(CQE cqe);
  // Drops the current message; `srq_status` is the status of a class E completion.
  void abandon(WQEStatus srq_status);

  // A copy to the memory of a receive has failed after it counted as done: a class A fault. The
  // receive completes in error if it is still held; otherwise its completion reports the error.
  void on_copy_failed(const CopyMark& mark);

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
  CopyLane* const copies_;
  ReceiveQueue& queue_;
  bool shared_;
  std::optional<PDId> srq_pd_;
  EngineCounters& counters_;
  ResponderFault& fault_;
  Ring<CQE> cqes_{kCQEsPerPacket};
  bool holding_ = false;
  u32 taken_ = 0;  // receives so far: the number of the held one
  ReceiveWQE held_;
  bool halted_ = false;  // after a class A fault, until on_state()
  bool fatal_event_ = false;
};

}  // namespace verbena
