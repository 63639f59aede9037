// Headers of packets as records of a ring have them (frame_ring.h), instead of encoding them.
#pragma once

#include "explain/packet_history.h"
#include "host/local/frame_ring.h"
#include "transport/acknowledgement.h"
#include "transport/local/local_packets.h"
#include "transport/qp_attributes.h"

namespace verbena::host {

// Of an acknowledgement that `qp` sends.
void to_ring(const QPAttributes& qp, PSN psn, const AETH& aeth, RingHeaders& out);
// Of a SEND.
void to_ring(const QPAttributes& qp, const LocalSend& send, RingHeaders& out);
// False: the packet needs more than there is in a record, or is not of RC.
[[nodiscard]] bool fits_ring(Opcode opcode);
// Precondition: it fits.
void to_ring(const PacketHeaders& headers, RingHeaders& out);
// Sets what the OpCode carries, and nothing else. False: no OpCode that can be in a ring.
[[nodiscard]] bool from_ring(const RingHeaders& ring, PacketHeaders& out);

// A SEND takes along an acknowledgement that would go before it.
void bring(const RingHeaders& acknowledgement, RingHeaders& send);
[[nodiscard]] inline bool is_acknowledgement(const RingHeaders& headers) {
  return headers.opcode == Opcode{Service::kRC, Op::kAcknowledge}.to_byte();
}
// What it has taken along. False: nothing.
[[nodiscard]] bool brought_by(const RingHeaders& send, Acknowledgement& out);

// Such a packet of our QP `qp`, for explanations.
void record(const RingHeaders& headers, std::size_t payload_bytes, QPN qp, Time at,
            explain::PacketRecord& out);

}  // namespace verbena::host
