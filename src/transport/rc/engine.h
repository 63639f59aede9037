// RCEngine: the Reliable Connection service of one QP: a requester and a responder that share only
// the QP's attributes. IBTA Vol 1, 9.7. Contract: transport/engine.h.
// XRC is the same service under another name with one half at each end (Annex A14): an initiator
// uses the requester alone, a target the responder.
#pragma once

#include "transport/engine.h"
#include "transport/rc/requester.h"
#include "transport/rc/responder.h"

namespace verbena {

class RCEngine final : public Engine {
 public:
  RCEngine(const EngineParts& parts, const RCLimits& limits);

  [[nodiscard]] PostError post_send(const SendWR& wr, Time now) override;
  void take_back_sends(u32 count) override { requester_.take_back(count); }
  void on_state(QPState from, Time now) override;
  void on_packet(const PacketView& packet, const RxContext& context, Time now) override;
  void on_acknowledgement(const Acknowledgement& acknowledgement, Time now) override;
  [[nodiscard]] bool on_receive_posted(Time now) override;
  void on_timer(Time now) override;
  [[nodiscard]] bool on_awaited(Time now) override { return requester_.on_awaited(now); }
  [[nodiscard]] bool is_idle() override;
  [[nodiscard]] bool poll_packet(Time now, MaySend what, TxPacket& out) override;
  [[nodiscard]] EngineOutputs outputs() const override;
  [[nodiscard]] bool poll_send_cqe(CQE& out) override;
  [[nodiscard]] bool poll_receive_cqe(CQE& out) override;
  [[nodiscard]] std::optional<EngineEvent> poll_event() override;
  [[nodiscard]] Time next_timer() const override;
  [[nodiscard]] const EngineCounters& counters() const override { return counters_; }
  [[nodiscard]] const QPFault& fault() const override { return fault_; }

 private:
  [[nodiscard]] bool poll_half(Time now, MaySend what, TxPacket& out);

  const QPAttributes& qp_;
  EngineCounters counters_;
  QPFault fault_;
  RCRequester requester_;
  RCResponder responder_;
  u32 responses_in_a_row_ = 0;
};

}  // namespace verbena
