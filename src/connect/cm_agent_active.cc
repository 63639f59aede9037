// The active side: REQ out, REP in, RTU out. IBTA Vol 1, 12.9.5, 12.9.8.3.
#include "connect/cm_agent.h"
#include "connect/cm_timeout.h"
#include "connect/private_data.h"

namespace verbena {
namespace {

bool fits(const ConnectParams& p) {
  return p.qpn.value <= kMask24 && p.retry_count <= 7 && p.rnr_retry_count <= 7 &&
         p.flow_label <= kMaxFlowLabel && p.sl <= 15 && p.packet_rate <= 63 &&
         p.packet_life_time <= kMaxTimeoutField &&
         p.remote_cm_response_timeout <= kMaxTimeoutField &&
         p.local_cm_response_timeout <= kMaxTimeoutField && p.max_cm_retries <= 15 &&
         p.ece.vendor_id <= kMask24 && p.private_data.size() <= cm::REQ::kPrivateDataSize;
}

cm::Path path_of(const ConnectParams& p, u8 ca_ack_delay) {
  const bool subnet_local = p.hop_limit <= 1;
  const u16 lid = subnet_local ? u16{0} : cm::kPermissiveLID;  // as Linux writes for RoCE
  return {.local_lid = lid,
          .remote_lid = lid,
          .local_gid = p.local_gid,
          .remote_gid = p.remote_gid,
          .flow_label = p.flow_label,
          .packet_rate = p.packet_rate,
          .traffic_class = p.traffic_class,
          .hop_limit = p.hop_limit,
          .sl = p.sl,
          .subnet_local = subnet_local,
          .local_ack_timeout = ack_timeout_code(ca_ack_delay, p.packet_life_time)};
}

cm::TransportService service_of(CMTransport transport) {
  switch (transport) {
    case CMTransport::kRC: return cm::TransportService::kRC;
    case CMTransport::kUC: return cm::TransportService::kUC;
    case CMTransport::kXRC: return cm::TransportService::kExtended;
  }
  CHECK_UNREACHABLE();
}

cm::REQ request_of(const ConnectParams& p, const CMConfig& config, CommId local_id) {
  cm::REQ req{.local_comm_id = local_id,
              .vendor_id = p.ece.vendor_id,
              .service_id = p.service_id,
              .local_ca_guid = config.ca_guid,
              .local_qpn = p.qpn,
              .initiator_depth = p.initiator_depth,
              .remote_cm_response_timeout = p.remote_cm_response_timeout,
              .transport_service = service_of(p.transport),
              .end_to_end_flow_control = p.end_to_end_flow_control,
              .starting_psn = p.starting_psn,
              .local_cm_response_timeout = p.local_cm_response_timeout,
              .p_key = p.p_key,
              .path_mtu_code = static_cast<u8>(p.path_mtu),
              .max_cm_retries = p.max_cm_retries,
              .primary = path_of(p, config.ca_ack_delay),
              .private_data = padded<cm::REQ::kPrivateDataSize>(p.private_data)};
  if (p.transport == CMTransport::kXRC) {  // an XRC initiator responds to nothing. Annex A14
    req.extended_transport = cm::kExtendedXRC;
    return req;
  }
  req.responder_resources = p.responder_resources;
  req.retry_count = p.retry_count;
  req.rnr_retry_count = p.rnr_retry_count;
  req.srq = p.srq;
  return req;
}

}  // namespace

Result<CommId> CMAgent::connect(const ConnectParams& p, Time now) {
  if (!fits(p)) return failure(Status::kInvalidArgument);
  if (!make_room()) return failure(Status::kNoMemory);
  CMConnection& c = add_connection();
  c.local_gid = p.local_gid;
  c.remote_gid = p.remote_gid;
  c.state = CMState::kREQSent;
  c.transport = p.transport;
  c.user = p.user;
  c.transaction_id = prng_.next();
  c.local_qpn = p.qpn;
  c.packet_life_time = p.packet_life_time;
  c.response_time = cm_response_time(p.remote_cm_response_timeout, p.packet_life_time);
  c.retire_time = cm_response_time(p.local_cm_response_timeout, p.packet_life_time) * 2;
  c.max_retries = p.max_cm_retries;
  c.patient_until = now + config_.refusal_patience;
  send(c, request_of(p, config_, c.local_id), p.ece.options);
  await_answer(c, now);
  return c.local_id;
}

void CMAgent::on_message(const Incoming& in, const cm::REP& rep) {
  if (rep.local_comm_id == CommId{}) {
    ++counters_.malformed;
    return;
  }
  CMConnection* c = connections_.find(rep.remote_comm_id);
  if (c != nullptr && from_peer(in, c) == nullptr) return;
  const bool waits =
      c != nullptr && (c->state == CMState::kREQSent || c->state == CMState::kMRAREQReceived);
  if (waits) {
    if (adopt_reply(in, rep, *c))
      tell(*c, ReplyReceived{rep, {rep.vendor_id, in.attribute_modifier}});
    return;
  }
  if (c != nullptr && c->remote_id == rep.local_comm_id) return repeat_for_rep(*c);
  // The connection has ended here: the peer need not repeat the message until its retries end.
  // 12.6.7.2, code 6
  ++counters_.unmatched;
  answer(in, cm::REJ{.local_comm_id = rep.remote_comm_id,
                     .remote_comm_id = rep.local_comm_id,
                     .message_rejected = cm::Answered::kREP,
                     .reason = cm::RejectReason::kInvalidCommunicationID});
}

// Returns false if the reply cannot be used.
bool CMAgent::adopt_reply(const Incoming& in, const cm::REP& rep, CMConnection& c) {
  if (connections_.find_remote(c.remote_gid, rep.local_comm_id) != nullptr) {
    ++counters_.duplicates;  // the peer's ID belongs to another connection, not to this REQ
    return false;
  }
  c.remote_id = rep.local_comm_id;
  c.remote_ca_guid = rep.local_ca_guid;
  c.remote_qpn = c.transport == CMTransport::kXRC ? QPN{rep.local_eecn} : rep.local_qpn;
  connections_.index_remote(c);
  if (CMConnection* old = connections_.find_qp(c.remote_gid, c.remote_ca_guid, c.remote_qpn)) {
    drop_stale(*old, in.now);
    c.state = CMState::kREPReceived;
    tell(c, Rejected{cm::REJ{.reason = cm::RejectReason::kStaleConnection}});
    refuse(c, {.reason = cm::RejectReason::kStaleConnection}, in.now);
    return false;
  }
  connections_.index_qp(c);
  connections_.disarm(c);
  c.time_wait = cm_timeout(ack_timeout_code(rep.target_ack_delay, c.packet_life_time));
  c.state = CMState::kREPReceived;
  return true;
}

void CMAgent::repeat_for_rep(const CMConnection& c) {
  ++counters_.duplicates;
  const bool has_answer =
      c.state == CMState::kMRAREPSent ||
      (c.state == CMState::kEstablished && c.sent_attribute == cm::Attribute::kRTU) ||
      (c.state == CMState::kRetired && c.sent_attribute == cm::Attribute::kREJ);
  if (has_answer) send_again(c);
}

Status CMAgent::ready_to_use(CommId id, std::span<const u8> private_data) {
  if (private_data.size() > cm::RTU::kPrivateDataSize) return Status::kInvalidArgument;
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (c->state != CMState::kREPReceived && c->state != CMState::kMRAREPSent)
    return Status::kInvalidArgument;
  c->state = CMState::kEstablished;
  send(*c, cm::RTU{.local_comm_id = c->local_id,
                   .remote_comm_id = c->remote_id,
                   .private_data = padded<cm::RTU::kPrivateDataSize>(private_data)});
  return Status::kOk;
}

}  // namespace verbena
