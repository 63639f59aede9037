#include "faults/packet_info.h"

#include "wire/ib/bth.h"

namespace verbena::faults {

PacketInfo PacketInfo::of(const EgressFrame& frame) {
  const BTH bth = *BTH::decode(std::span(frame.headers).first(frame.headers_size));
  return {.direction = Direction::kTransmit,
          .opcode = bth.opcode,
          .psn = bth.psn,
          .local_qp = frame.source_qp,
          .peer = frame.destination,
          .size_bytes = frame.transport_size() + kICRCSize};
}

std::optional<PacketInfo> PacketInfo::of(const IngressFrame& frame) {
  const std::optional<BTH> bth = BTH::decode(frame.transport);
  if (!bth) return std::nullopt;
  return PacketInfo{.direction = Direction::kReceive,
                    .opcode = bth->opcode,
                    .psn = bth->psn,
                    .local_qp = bth->dest_qp,
                    .peer = frame.source,
                    .size_bytes = frame.transport.size()};
}

}  // namespace verbena::faults
