#include "device/port/admission.h"

#include "device/port/p_key_match.h"

namespace verbena {
namespace {

bool serves(QPType type, Opcode opcode) {
  const Service service = opcode.service;
  if (type == QPType::kRC && service == Service::kRC) return true;  // nearly always
  if (opcode == kSackOpcode) return type == QPType::kRC || type == QPType::kXRCInitiator;
  switch (type) {
    case QPType::kRC: return service == Service::kRC;
    case QPType::kUC: return service == Service::kUC;
    case QPType::kUD: return service == Service::kUD;
    case QPType::kXRCInitiator: return service == Service::kXRC && !traits_of(opcode).request;
    case QPType::kXRCTarget: return service == Service::kXRC && traits_of(opcode).request;
    case QPType::kRawPacket: return false;
  }
  CHECK_UNREACHABLE();
}

// Conditions rather than a switch: for each packet, and a jump by a table is guessed less well.
bool takes_packets(QPState state, bool request) {
  if (state == QPState::kRTS || state == QPState::kSQD || state == QPState::kSQE) return true;
  return state == QPState::kRTR && request;
}

}  // namespace

bool is_from_peer(const QueuePair& qp, const IngressFrame& frame) {
  const AddressVector& path = qp.attributes.path;
  return frame.source == path.destination && frame.destination == path.source;
}

Reception admit(const QueuePair* qp, const PacketView& packet, const IngressFrame& frame) {
  if (qp == nullptr) return Reception::kUnknownQP;
  const BTH& bth = packet.headers.bth;
  const QPAttributes& attributes = qp->attributes;
  if (!serves(attributes.type, bth.opcode)) return Reception::kService;
  if (!takes_packets(attributes.state, traits_of(bth.opcode).request)) return Reception::kState;
  if (!p_keys_match(attributes.p_key, bth.p_key)) return Reception::kPKey;
  if (is_connected(attributes.type) && !is_from_peer(*qp, frame)) return Reception::kSource;
  return Reception::kAccepted;
}

}  // namespace verbena
