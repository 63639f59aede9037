// UCRequester: the requester half of one UC QP: WQEs in, request packets out, CQEs out. IBTA Vol 1,
// 9.8.2.1 (UC requester), 9.7.2 (segmentation). The PSN counts packets and never waits. Sans-IO, by
// the Engine's contract.
#pragma once

#include "transport/unreliable_sends.h"

namespace verbena {

class UCRequester {
 public:
  UCRequester(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault);

  [[nodiscard]] PostError post(const SendWR& wr, Time now);
  void take_back(u32 count) { sends_.take_back(count); }
  void free_sends(u32 count) { sends_.free_sends(count); }
  void on_state(QPState from);
  [[nodiscard]] bool poll_packet(TxPacket& out);
  [[nodiscard]] bool poll_cqe(CQE& out) { return sends_.poll_cqe(out); }
  [[nodiscard]] std::optional<EngineEvent> poll_event() { return sends_.poll_event(); }
  [[nodiscard]] bool is_draining() const { return sends_.is_draining(); }

 private:
  void write_headers(const SendWQE& wqe, u32 payload_bytes, PacketHeaders& out);

  const QPAttributes& qp_;
  const ProtectionTable& memory_;
  CopyLane* const copies_;
  UnreliableSends sends_;
  PSN next_psn_;
  u32 offset_ = 0;  // bytes of the current message that are in earlier packets
};

}  // namespace verbena
