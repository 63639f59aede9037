#include "wire/roce/cnp.h"

namespace verbena {

PacketHeaders make_cnp(QPN dest_qp, PKey p_key) {
  PacketHeaders headers;
  headers.bth = {.opcode = kCNPOpcode, .p_key = p_key, .becn = true, .dest_qp = dest_qp};
  return headers;
}

std::array<u8, kCNPSize> encode_cnp(QPN dest_qp, PKey p_key) {
  std::array<u8, kCNPSize> bytes{};
  make_cnp(dest_qp, p_key).encode(bytes);
  return bytes;
}

bool is_cnp(const PacketView& packet) {
  return packet.headers.bth.opcode == kCNPOpcode && packet.payload.size() == kCNPPayloadSize;
}

}  // namespace verbena
