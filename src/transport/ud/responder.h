// UDResponder: the responder half of one UD QP: datagrams in, receive CQEs out. IBTA Vol 1,
// 9.8.3.2, 9.6.1.4 (Q_Key), 9.9.3 (responder errors, table 59).
//
// 40 bytes of GRH precede the payload in every receive buffer and count in byte_length. The
// responder drops datagrams without an answer, and counts them, for a wrong Q_Key, more payload
// than the MTU, no posted receive (class D), and a receive that is too small for GRH and payload.
// The last is class D too, as in the specification and in Linux's rxe: the receive stays for the
// next datagram (on an SRQ it completes with kLocalLength, class E). Sans-IO, by the Engine's
// contract.
#pragma once

#include "transport/unreliable_receives.h"

namespace verbena {

class UDResponder {
 public:
  UDResponder(const EngineParts& parts, EngineCounters& counters, ResponderFault& fault);

  void on_state(QPState from) { receives_.on_state(from); }
  void on_packet(const PacketView& packet, const RxContext& context);
  void give_back_receives() { receives_.give_back(); }
  void on_copy_failed(const CopyMark& mark) { receives_.on_copy_failed(mark); }
  [[nodiscard]] bool poll_cqe(CQE& out) { return receives_.poll_cqe(out); }
  [[nodiscard]] std::optional<EngineEvent> poll_event() { return receives_.poll_event(); }

 private:
  [[nodiscard]] bool acceptable(const PacketView& packet) const;
  [[nodiscard]] bool place(const PacketView& packet, const RxContext& context);
  void finish(const PacketView& packet, const RxContext& context);

  const QPAttributes& qp_;
  EngineCounters& counters_;
  UnreliableReceives receives_;
};

}  // namespace verbena
