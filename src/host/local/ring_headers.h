// Headers of packets as records of a ring have them (frame_ring.h), instead of encoding them.
#pragma once

#include "explain/packet_history.h"
#include "host/local/frame_ring.h"
#include "transport/qp_attributes.h"

namespace verbena::host {

[[nodiscard]] RingHeaders acknowledgement_of(const QPAttributes& qp, PSN psn, const AETH& aeth);
// nullopt: the packet needs more, or is not of RC.
[[nodiscard]] std::optional<RingHeaders> to_ring(const PacketHeaders& headers);
// Sets what the OpCode carries, and nothing else. False: no OpCode that can be in a ring.
[[nodiscard]] bool from_ring(const RingHeaders& ring, PacketHeaders& out);

// Such a packet of our QP `qp`, for explanations.
[[nodiscard]] explain::PacketRecord record_of(const RingHeaders& headers, std::size_t payload_bytes,
                                              QPN qp, Time at);

}  // namespace verbena::host
