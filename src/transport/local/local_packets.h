// LocalPackets: the path of a connected QP's packets to a peer on the same host that takes them as
// structs: no frame is made, nothing is encoded. To both transports they are ordinary packets, with
// PSNs, acknowledgements and NAKs; lost ones are sent again. The driver implements it:
// src/host/local/.
#pragma once

#include "transport/qp_attributes.h"
#include "transport/tx_packet.h"

namespace verbena {

// A SEND of one packet that need not wait for anything. IBTA Vol 1, 9.2
struct LocalSend {
  PSN psn;
  Bytes payload;  // in memory of the application, which may be unmapped (memory/touch.h)
  bool solicited = false, with_immediate = false;  // it asks for an acknowledgement
  u32 immediate = 0;

  [[nodiscard]] u32 bytes() const {  // of headers and payload, with its pad
    const u32 headers = BTH::kSize + (with_immediate ? ImmDt::kSize : 0);
    return headers + ((static_cast<u32>(payload.size()) + 3) & ~3u);
  }
};

class LocalPackets {
 public:
  virtual ~LocalPackets() = default;
  // Returns true if the packet, or the train, was taken; its payload has been read then. Returns
  // false if a frame must be made of it. `packet.headers.bth` is complete.
  [[nodiscard]] virtual bool take(const QPAttributes& qp, const TxPacket& packet) = 0;
  // The same for a SEND, which the peer sees at once. Returns false also if its payload cannot be
  // read.
  [[nodiscard]] virtual bool send(const QPAttributes& qp, const LocalSend& send) = 0;
  // The same for an acknowledgement. IBTA Vol 1, 9.7.5.1
  [[nodiscard]] virtual bool acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) = 0;
  // No packet follows for now: makes the taken packets visible to the peers.
  virtual void flush() = 0;
};

}  // namespace verbena
