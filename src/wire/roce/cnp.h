// CNP: Congestion Notification Packet, from the receiver of marked packets to their sender.
// A17.9.3.
//   | BTH: OpCode 0x81, BECN 1, PSN 0, DestQP = the sender's QP | 16 reserved bytes | ICRC |
#pragma once

#include <array>

#include "wire/ib/packet.h"

namespace verbena {

inline constexpr std::size_t kCNPPayloadSize = 16;  // bytes, sent as 0, ignored on receipt
inline constexpr std::size_t kCNPSize = BTH::kSize + kCNPPayloadSize;  // without the ICRC

// `p_key`: that of the marked packet.
[[nodiscard]] PacketHeaders make_cnp(QPN dest_qp, PKey p_key);
// Returns BTH .. end of payload, as on the wire.
[[nodiscard]] std::array<u8, kCNPSize> encode_cnp(QPN dest_qp, PKey p_key);
// Returns true if the OpCode is CNP and the reserved bytes are there.
[[nodiscard]] bool is_cnp(const PacketView& packet);

}  // namespace verbena
