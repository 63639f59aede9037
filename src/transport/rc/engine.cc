#include "transport/rc/engine.h"

namespace verbena {

namespace {

// Responses go first, but a long READ response does not block our own requests. Runs are long
// enough for a link to batch them.
constexpr u32 kResponseRun = 32;  // packets

Service service_of(QPType type) {
  const bool xrc = type == QPType::kXRCInitiator || type == QPType::kXRCTarget;
  return xrc ? Service::kXRC : Service::kRC;
}

}  // namespace

RCEngine::RCEngine(const EngineParts& parts, const RCLimits& limits)
    : qp_(parts.attributes),
      local_packets_(parts.local_packets),
      requester_(parts, limits, counters_, fault_.requester),
      responder_(parts, limits, counters_, fault_.responder) {}

PostError RCEngine::post_send(const SendWR& wr, Time now) {
  if (qp_.type == QPType::kXRCTarget) return PostError::kBadOpcode;  // it has no send queue
  if (wr.xrc_srq > kMask24) return PostError::kBadDestination;
  return requester_.post(wr, now);
}

void RCEngine::on_state(QPState from, Time now) {
  requester_.on_state(from, now);
  responder_.on_state(from);
}

void RCEngine::on_packet(const PacketView& packet, const RxContext& context, Time now) {
  if (traits_of(packet.headers.bth.opcode).request)
    responder_.on_request(packet);
  else
    requester_.on_response(packet, context.path, now);
}

void RCEngine::on_acknowledgement(const Acknowledgement& acknowledgement, Time now) {
  requester_.on_acknowledgement(acknowledgement, now);
}

bool RCEngine::on_receive_posted(Time) { return responder_.on_receive_posted(); }

void RCEngine::on_timer(Time now) { requester_.on_timer(now); }

bool RCEngine::is_idle() {
  if (!responder_.is_idle() || !requester_.is_idle()) return false;
  responses_in_a_row_ = 0;
  return true;
}

bool RCEngine::poll_packet(Time now, MaySend what, TxPacket& out) {
  if (!poll_half(now, what, out)) return false;
  Opcode& opcode = out.headers.bth.opcode;
  if (opcode != kSackOpcode) opcode.service = service_of(qp_.type);
  return true;
}

bool RCEngine::poll_half(Time now, MaySend what, TxPacket& out) {
  if (what == MaySend::kAcknowledgements) return responder_.poll_acknowledgement(out);
  const Trains trains = what == MaySend::kTrains ? Trains::kYes : Trains::kNo;
  const u32 left = kResponseRun - responses_in_a_row_;
  if (left != 0 && responder_.poll_packet(out, trains == Trains::kYes ? left : 1)) {
    responses_in_a_row_ += out.packets;
    return true;
  }
  responses_in_a_row_ = 0;
  return requester_.poll_packet(now, trains, out) || responder_.poll_packet(out);
}

EngineOutputs RCEngine::outputs() const {
  return {.send_cqe = requester_.may_complete(),
          .receive_cqe = responder_.may_complete(),
          .event = requester_.may_raise() || responder_.may_raise(),
          .packet = may_send(),
          .sooner_timer = requester_.has_deferred()};
}

bool RCEngine::poll_send_cqe(CQE& out) { return requester_.poll_cqe(out); }

bool RCEngine::poll_receive_cqe(CQE& out) { return responder_.poll_cqe(out); }

std::optional<EngineEvent> RCEngine::poll_event() {
  const std::optional<EngineEvent> event = responder_.poll_event();
  return event ? event : requester_.poll_event();
}

Time RCEngine::next_timer() const { return requester_.next_timer(); }

}  // namespace verbena
