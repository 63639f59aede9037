// UCResponder: the responder half of one UC QP: request packets in, receive CQEs out. IBTA Vol 1,
// 9.8.2.2 (UC responder), 9.9.3 (responder errors, table 59).
//
// A message is delivered whole or not at all. A PSN gap, a packet out of sequence, a wrong length,
// a key without the right or a missing receive drops the current message without an answer. The
// next First or Only packet begins anew, whatever its PSN. Memory that a dropped message was about
// to fill is undefined; memory outside of it is untouched. Sans-IO, by the Engine's contract.
#pragma once

#include "transport/unreliable_receives.h"

namespace verbena {

class UCResponder {
 public:
  UCResponder(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault);

  void on_state(QPState from);
  void on_packet(const PacketView& packet, const RxContext& context);
  void give_back_receives() { receives_.give_back(); }
  void on_copy_failed(const CopyMark& mark);
  [[nodiscard]] bool poll_cqe(CQE& out) { return receives_.poll_cqe(out); }
  [[nodiscard]] std::optional<EngineEvent> poll_event();

 private:
  enum class Message : u8 { kNone, kSend, kRDMAWrite };
  static Message message_of(Op op);

  void note_established();
  void check_psn(PSN psn);
  void abandon(WQEStatus srq_status);
  void drop(WQEStatus srq_status);
  // Returns kSuccess, or the reason to drop the message: the status of its receive completion on an
  // SRQ.
  [[nodiscard]] WQEStatus place(const PacketView& packet, const OpcodeTraits& traits);
  [[nodiscard]] WQEStatus place_send(const PacketView& packet, const OpcodeTraits& traits);
  [[nodiscard]] WQEStatus place_write(const PacketView& packet, const OpcodeTraits& traits);
  [[nodiscard]] bool open_write(const RETH& reth);
  void finish(const PacketView& packet, const OpcodeTraits& traits);

  const QPAttributes& qp_;
  const ProtectionTable& memory_;
  CopyLane* const copies_;
  EngineCounters& counters_;
  UnreliableReceives receives_;
  PSN expected_psn_;
  Message message_ = Message::kNone;  // the one being received
  u64 received_ = 0;                  // bytes of it so far
  RETH reth_;                         // of a WRITE
  bool established_ = false, established_event_ = false;
};

}  // namespace verbena
