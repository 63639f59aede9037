// RequestBuilder: makes request packets of WQEs: headers, and payload in place. It keeps no state:
// SendWindow knows which packet is next. IBTA Vol 1, 9.7.3, Annex A19.
#pragma once

#include "transport/engine.h"
#include "transport/rc/limits.h"
#include "transport/tx_packet.h"

namespace verbena {

class RequestBuilder {
 public:
  RequestBuilder(const EngineParts& parts, const RCLimits& limits);

  // A part of a WQE that has PSNs, from `psn` on: of a READ, the responses that are requested; of a
  // message, one packet, or a train of middle packets.
  struct Part {
    PSN psn;
    u32 psns;
  };
  // A train becomes one packet where its payload is not accessible in one piece: `part.psns` says
  // so. The caller decides afterwards whether a message asks for an ACK; all other requests do.
  // kLater: the payload is not here yet. Any fault is one of our own side.
  [[nodiscard]] MemoryFault build(const SendWQE& wqe, Part& part, TxPacket& out) const;

 private:
  MemoryFault build_message(const SendWQE& wqe, Part& part, TxPacket& out) const;
  MemoryFault build_atomic_write(const SendWQE& wqe, TxPacket& out) const;
  void build_read(const SendWQE& wqe, const Part& part, TxPacket& out) const;
  bool load_train(const SendWQE& wqe, u64 offset, u32 packets, PayloadList& out) const;
  MemoryFault load(const SendWQE& wqe, u64 offset, u32 length, PayloadList& out) const;
  u32 mtu() const { return limits_.packet_size(qp_.path_mtu); }

  const QPAttributes& qp_;
  const ProtectionTable& memory_;
  const RCLimits& limits_;
  CopyLane* const copies_;
};

}  // namespace verbena
