// RCEngine: the Reliable Connection service of one QP: a requester and a responder that share only
// the QP's attributes. IBTA Vol 1, 9.7. Contract: transport/engine.h.
//
// XRC is the same service with one half at each end (Annex A14): an initiator uses the requester
// alone, a target the responder.
#pragma once

#include "transport/datagram_engine.h"
#include "transport/rc/requester.h"
#include "transport/rc/responder.h"

namespace verbena {

class RCEngine final : public DatagramEngine {
 public:
  RCEngine(const EngineParts& parts, const RCLimits& limits);

  [[nodiscard]] PostError post_send(const SendWR& wr, Time now) override;
  void take_back_sends(u32 count) override { requester_.take_back(count); }
  void free_sends(u32 count) override { requester_.free_sends(count); }
  void give_back_receives() override { responder_.give_back_receives(); }
  void on_state(QPState from, Time now) override;
  void on_packet(const PacketView& packet, const RxContext& context, Time now) override;
  void on_acknowledgement(const Acknowledgement& acknowledgement, Time now) override;

  // The common cases: a SEND between processes of one host, and a SEND that arrives. Each function
  // does the work of post_send() and poll_packet(), or of on_packet() and poll_receive_cqe(), in
  // one step with the same result. If it returns nullopt or false, it has done nothing, and the
  // caller makes those calls.
  // send_at_once() sends the request that was posted last. Returns the bytes of headers and payload
  // with its pad.
  [[nodiscard]] std::optional<u32> send_at_once(Time now) {
    return local_packets_ == nullptr ? std::nullopt : requester_.send_at_once(*local_packets_, now);
  }
  // Returns where the payload of a SEND in one packet goes. There is no event to be polled then.
  [[nodiscard]] std::optional<u8*> expects_send(const PacketView& packet) const {
    return requester_.may_raise() ? std::nullopt : responder_.expects_send(packet);
  }
  [[nodiscard]] bool take_send(const PacketView& packet, u8* to, CQE& out) {
    return responder_.take_send(packet, to, out);
  }
  // Executes a train of requests if it is in order and fits the message.
  [[nodiscard]] bool take_train(const PacketView& packet, u32 packets) {
    return responder_.take_train(packet, packets);
  }
  [[nodiscard]] bool may_complete_send() const { return requester_.may_complete(); }
  [[nodiscard]] bool may_send() const { return !responder_.is_idle() || !requester_.is_idle(); }
  [[nodiscard]] bool on_receive_posted(Time now) override;
  void on_send_copy_failed() override { requester_.on_copy_failed(); }
  void on_receive_copy_failed(const CopyMark& mark) override { responder_.on_copy_failed(mark); }
  void on_timer(Time now) override;
  [[nodiscard]] bool run_deferred(Time now) override { return requester_.run_deferred(now); }
  [[nodiscard]] bool is_idle() override;
  [[nodiscard]] bool poll_packet(Time now, MaySend what, TxPacket& out) override;
  [[nodiscard]] EngineOutputs outputs() const override;
  [[nodiscard]] bool poll_send_cqe(CQE& out) override;
  [[nodiscard]] bool poll_receive_cqe(CQE& out) override;
  [[nodiscard]] std::optional<EngineEvent> poll_event() override;
  [[nodiscard]] Time next_timer() const override;
  [[nodiscard]] const EngineCounters& counters() const override { return counters_; }
  [[nodiscard]] bool is_draining() const override { return requester_.is_draining(); }
  [[nodiscard]] const QPFault& fault() const override { return fault_; }

 private:
  [[nodiscard]] bool poll_half(Time now, MaySend what, TxPacket& out);

  const QPAttributes& qp_;
  LocalPackets* const local_packets_;
  EngineCounters counters_;
  QPFault fault_;
  RCRequester requester_;
  RCResponder responder_;
  u32 responses_in_a_row_ = 0;
};

}  // namespace verbena
