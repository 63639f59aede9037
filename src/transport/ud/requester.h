// UDRequester: the requester half of one UD QP: WQEs in, one packet each out, CQEs out. IBTA Vol 1,
// 9.8.3.1; 10.2.5 (Q_Key). A message is one packet: at most the port's MTU, which the device keeps
// in path_mtu. Sans-IO, by the Engine's contract.
#pragma once

#include "transport/unreliable_sends.h"

namespace verbena {

class UDRequester {
 public:
  UDRequester(const EngineParts& parts, EngineCounters& counters, RequesterFault& fault);

  [[nodiscard]] PostError post(const SendWR& wr, Time now);
  void take_back(u32 count) { sends_.take_back(count); }
  void free_sends(u32 count) { sends_.free_sends(count); }
  void on_state(QPState from);
  [[nodiscard]] bool poll_packet(TxPacket& out);
  [[nodiscard]] bool poll_cqe(CQE& out) { return sends_.poll_cqe(out); }
  [[nodiscard]] std::optional<EngineEvent> poll_event() { return sends_.poll_event(); }
  [[nodiscard]] bool is_draining() const { return sends_.is_draining(); }

 private:
  void write_headers(const SendWQE& wqe, PacketHeaders& out) const;

  const QPAttributes& qp_;
  const ProtectionTable& memory_;
  CopyLane* const copies_;
  UnreliableSends sends_;
  PSN next_psn_;
};

}  // namespace verbena
