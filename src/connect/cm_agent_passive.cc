// The passive side: REQ in, REP out, RTU in. IBTA Vol 1, 12.9.6, 12.9.8.3.
#include "connect/cm_agent.h"
#include "connect/cm_timeout.h"
#include "connect/private_data.h"

namespace verbena {
namespace {

std::optional<CMTransport> transport_of(const cm::REQ& req) {
  switch (req.transport_service) {
    case cm::TransportService::kRC: return CMTransport::kRC;
    case cm::TransportService::kUC: return CMTransport::kUC;
    case cm::TransportService::kRD: return std::nullopt;
    case cm::TransportService::kExtended:
      if (req.extended_transport != cm::kExtendedXRC) return std::nullopt;
      return CMTransport::kXRC;
  }
  CHECK_UNREACHABLE();
}

// REQ holds the Local ACK Timeout, which covers a round trip. Computed as in Linux.
u8 packet_life_time_of(const cm::REQ& req) {
  const u8 round_trip = req.primary.local_ack_timeout;
  return round_trip == 0 ? u8{0} : static_cast<u8>(round_trip - 1);
}

bool fits(const AcceptParams& p) {
  return p.qpn.value <= kMask24 && p.rnr_retry_count <= 7 && p.ece.vendor_id <= kMask24 &&
         p.private_data.size() <= cm::REP::kPrivateDataSize;
}

cm::REP reply_of(const AcceptParams& p, const CMConfig& config, const CMConnection& c) {
  cm::REP rep{.local_comm_id = c.local_id,
              .remote_comm_id = c.remote_id,
              .vendor_id = p.ece.vendor_id,
              .starting_psn = p.starting_psn,
              .responder_resources = p.responder_resources,
              .target_ack_delay = config.ca_ack_delay,
              .rnr_retry_count = p.rnr_retry_count,
              .local_ca_guid = config.ca_guid,
              .private_data = padded<cm::REP::kPrivateDataSize>(p.private_data)};
  if (c.transport == CMTransport::kXRC) {  // an XRC target initiates nothing. Annex A14
    rep.local_eecn = p.qpn.value;
    rep.srq = true;
    return rep;
  }
  rep.local_qpn = p.qpn;
  rep.initiator_depth = p.initiator_depth;
  rep.end_to_end_flow_control = p.end_to_end_flow_control;
  rep.srq = p.srq;
  return rep;
}

}  // namespace

void CMAgent::on_message(const Incoming& in, const cm::REQ& req) {
  if (req.local_comm_id == CommId{}) {
    ++counters_.malformed;
    return;
  }
  if (CMConnection* c = connections_.find_remote(in.frame.source, req.local_comm_id))
    return repeat_for_req(*c);
  Listener* listener = listeners_.find(req.service_id, in.frame.destination);
  if (const std::optional<cm::RejectReason> reason = refusal(in, req, listener)) {
    ++counters_.unmatched;
    return answer(in, cm::REJ{.remote_comm_id = req.local_comm_id, .reason = *reason});
  }
  if (listener->waiting >= listener->params.backlog)
    ++counters_.backlog_drops;  // without an answer, as Linux: the peer repeats its request
  else if (!make_room())
    ++counters_.table_drops;
  else
    add_request(in, req, *listener);
}

// Returns the reason if a new request must be refused at once. If the request's QP is known to be
// connected, its peer has restarted, and that connection is stale. 12.9.8.3.1
std::optional<cm::RejectReason> CMAgent::refusal(const Incoming& in, const cm::REQ& req,
                                                 const Listener* listener) {
  if (!transport_of(req)) return cm::RejectReason::kInvalidTransportServiceType;
  if (!mtu_from_code(req.path_mtu_code)) return cm::RejectReason::kInvalidPathMTU;
  if (CMConnection* old = connections_.find_qp(in.frame.source, req.local_ca_guid, req.local_qpn)) {
    drop_stale(*old, in.now);
    return cm::RejectReason::kStaleConnection;
  }
  if (listener == nullptr) return cm::RejectReason::kInvalidServiceID;
  return std::nullopt;
}

void CMAgent::repeat_for_req(const CMConnection& c) {
  ++counters_.duplicates;
  const bool has_answer = c.state == CMState::kREPSent || c.state == CMState::kMRAREQSent ||
                          (c.state == CMState::kRetired && c.sent_attribute == cm::Attribute::kREJ);
  if (has_answer) send_again(c);
}

void CMAgent::add_request(const Incoming& in, const cm::REQ& req, Listener& listener) {
  CMConnection& c = add_connection();
  c.remote_id = req.local_comm_id;
  c.local_gid = in.frame.destination;
  c.remote_gid = in.frame.source;
  c.state = CMState::kREQReceived;
  c.transport = *transport_of(req);
  c.user = listener.params.user;
  c.transaction_id = in.transaction_id;
  c.remote_qpn = req.local_qpn;
  c.remote_ca_guid = req.local_ca_guid;
  c.waits_at = listener.id;
  c.packet_life_time = packet_life_time_of(req);
  c.response_time = cm_response_time(req.local_cm_response_timeout, c.packet_life_time);
  c.time_wait = cm_timeout(req.primary.local_ack_timeout);
  c.retire_time = cm_response_time(req.remote_cm_response_timeout, c.packet_life_time) * 2;
  c.max_retries = req.max_cm_retries;
  connections_.index_remote(c);
  connections_.index_qp(c);
  ++listener.waiting;
  tell(c, ConnectRequest{.listener = listener.id,
                         .local_gid = c.local_gid,
                         .remote_gid = c.remote_gid,
                         .req = req,
                         .ece = {req.vendor_id, in.attribute_modifier}});
}

Status CMAgent::accept(CommId id, const AcceptParams& p, Time now) {
  if (!fits(p)) return Status::kInvalidArgument;
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (c->state != CMState::kREQReceived && c->state != CMState::kMRAREQSent)
    return Status::kInvalidArgument;
  stop_waiting(*c);
  c->user = p.user;
  c->local_qpn = p.qpn;
  c->state = CMState::kREPSent;
  send(*c, reply_of(p, config_, *c), p.ece.options);
  await_answer(*c, now);
  return Status::kOk;
}

void CMAgent::on_message(const Incoming& in, const cm::RTU& rtu) {
  CMConnection* c = matched(in, rtu.remote_comm_id, rtu.local_comm_id);
  if (c == nullptr) return;
  if (c->state != CMState::kREPSent && c->state != CMState::kMRAREPReceived) {
    ++counters_.duplicates;
    return;
  }
  c->state = CMState::kEstablished;
  connections_.disarm(*c);
  tell(*c, Established{rtu});
}

Status CMAgent::establish(CommId id) {
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (c->state == CMState::kEstablished) return Status::kBusy;
  if (c->state != CMState::kREPSent && c->state != CMState::kMRAREPReceived)
    return Status::kInvalidArgument;
  c->state = CMState::kEstablished;
  connections_.disarm(*c);
  return Status::kOk;
}

}  // namespace verbena
