// Headers of packets as records of a ring have them (frame_ring.h), instead of encoding them.
#pragma once

#include "explain/packet_history.h"
#include "host/local/frame_ring.h"
#include "transport/acknowledgement.h"
#include "transport/local/local_packets.h"
#include "transport/qp_attributes.h"

namespace verbena::host {

// Writes the headers of an acknowledgement that `qp` sends.
void to_ring(const QPAttributes& qp, PSN psn, const AETH& aeth, RingHeaders& out);
// Writes the headers of a SEND.
void to_ring(const QPAttributes& qp, const LocalSend& send, RingHeaders& out);
// Returns false if the packet needs more than a record has room for, or is no RC packet.
[[nodiscard]] bool fits_ring(Opcode opcode);
// Precondition: it fits.
void to_ring(const PacketHeaders& headers, RingHeaders& out);
// Sets the fields that the OpCode carries, and no others. Returns false if no ring can have this
// OpCode.
[[nodiscard]] bool from_ring(const RingHeaders& ring, PacketHeaders& out);

// Piggybacks on a SEND an acknowledgement that would go before it.
void bring(const RingHeaders& acknowledgement, RingHeaders& send);
[[nodiscard]] inline bool is_acknowledgement(const RingHeaders& headers) {
  return headers.opcode == Opcode{Service::kRC, Op::kAcknowledge}.to_byte();
}
// Returns in `out` the acknowledgement that the SEND carries. Returns false if there is none.
[[nodiscard]] bool brought_by(const RingHeaders& send, Acknowledgement& out);

// Makes a record of such a packet of our QP `qp`, for explanations.
void record(const RingHeaders& headers, std::size_t payload_bytes, QPN qp, Time at,
            explain::PacketRecord& out);

}  // namespace verbena::host
