// UnreliableEngine: a requester and a responder of an unreliable service, side by side as one
// Engine. IBTA Vol 1, 9.8. Nothing is ever acknowledged or repeated, so the halves share only the
// counters and no timer is ever armed.
#pragma once

#include "transport/datagram_engine.h"

namespace verbena {

template <typename Requester, typename Responder>
class UnreliableEngine : public DatagramEngine {
 public:
  explicit UnreliableEngine(const EngineParts& parts)
      : requester_(parts, counters_, fault_.requester),
        responder_(parts, counters_, fault_.responder) {}

  PostError post_send(const SendWR& wr, Time now) override { return requester_.post(wr, now); }
  void take_back_sends(u32 count) override { requester_.take_back(count); }
  void free_sends(u32 count) override { requester_.free_sends(count); }
  void give_back_receives() override { responder_.give_back_receives(); }
  void on_state(QPState from, Time) override {
    requester_.on_state(from);
    responder_.on_state(from);
  }
  void on_packet(const PacketView& packet, const RxContext& context, Time) override {
    responder_.on_packet(packet, context);
  }
  bool on_receive_posted(Time) override { return false; }
  void on_timer(Time) override {}
  void on_receive_copy_failed(const CopyMark& mark) override { responder_.on_copy_failed(mark); }

  bool poll_packet(Time, MaySend what, TxPacket& out) override {
    return what != MaySend::kAcknowledgements && requester_.poll_packet(out);
  }
  bool poll_send_cqe(CQE& out) override { return requester_.poll_cqe(out); }
  bool poll_receive_cqe(CQE& out) override { return responder_.poll_cqe(out); }
  std::optional<EngineEvent> poll_event() override {
    const std::optional<EngineEvent> event = responder_.poll_event();
    return event.has_value() ? event : requester_.poll_event();
  }
  Time next_timer() const override { return Time::never(); }
  const EngineCounters& counters() const override { return counters_; }
  bool is_draining() const override { return requester_.is_draining(); }
  const QPFault& fault() const override { return fault_; }

 private:
  EngineCounters counters_;
  QPFault fault_;
  Requester requester_;
  Responder responder_;
};

}  // namespace verbena
