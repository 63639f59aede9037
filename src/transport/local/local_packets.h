// LocalPackets: the way of a connected QP's packets to a peer on the same host that takes them as
// they are: no frame is made of them, nothing is encoded. To both transports they are packets like
// all others, with their PSNs, acknowledgements and NAKs; what is lost on this way is sent again.
// The driver implements it: src/host/local/.
#pragma once

#include "transport/qp_attributes.h"
#include "transport/tx_packet.h"

namespace verbena {

// A SEND of one packet, which nothing stands in the way of. IBTA Vol 1, 9.2
struct LocalSend {
  PSN psn;
  Bytes payload;  // in memory of the application, which may have gone (memory/touch.h)
  bool solicited = false, with_immediate = false;  // it asks for an acknowledgement
  u32 immediate = 0;

  [[nodiscard]] u32 octets() const {  // of headers and payload, with its pad
    const u32 headers = BTH::kSize + (with_immediate ? ImmDt::kSize : 0);
    return headers + ((static_cast<u32>(payload.size()) + 3) & ~3u);
  }
};

class LocalPackets {
 public:
  virtual ~LocalPackets() = default;
  // Whether it was taken; its payload has been read then. False: a frame has to be made of it.
  // `packet.headers.bth` is complete.
  [[nodiscard]] virtual bool take(const QPAttributes& qp, const TxPacket& packet) = 0;
  // The same for a SEND, which the peer sees at once. False also: its payload cannot be read.
  [[nodiscard]] virtual bool send(const QPAttributes& qp, const LocalSend& send) = 0;
  // The same for an acknowledgement. IBTA Vol 1, 9.7.5.1
  [[nodiscard]] virtual bool acknowledge(const QPAttributes& qp, PSN psn, const AETH& aeth) = 0;
  // Nothing follows for now: what was taken is to be seen by the peers.
  virtual void flush() = 0;
};

}  // namespace verbena
