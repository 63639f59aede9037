// Service ID Resolution, which finds the UD QP of a service. IBTA Vol 1, 12.11.
#include "connect/cm_agent.h"
#include "connect/cm_timeout.h"
#include "connect/private_data.h"

namespace verbena {

Result<CommId> CMAgent::sidr_request(const SIDRRequestParams& p, Time now) {
  if (p.cm_response_timeout > kMaxTimeoutField || p.max_cm_retries > 15 ||
      p.private_data.size() > cm::SIDRREQ::kPrivateDataSize)
    return failure(Status::kInvalidArgument);
  if (!make_room()) return failure(Status::kNoMemory);
  CMConnection& c = add_connection();
  c.local_gid = p.local_gid;
  c.remote_gid = p.remote_gid;
  c.state = CMState::kSIDRREQSent;
  c.user = p.user;
  c.transaction_id = prng_.next();
  c.response_time = cm_timeout(p.cm_response_timeout);
  c.max_retries = p.max_cm_retries;
  send(c, cm::SIDRREQ{.request_id = c.local_id,
                      .p_key = p.p_key,
                      .service_id = p.service_id,
                      .private_data = padded<cm::SIDRREQ::kPrivateDataSize>(p.private_data)});
  await_answer(c, now);
  return c.local_id;
}

void CMAgent::on_message(const Incoming& in, const cm::SIDRREQ& req) {
  if (req.request_id == CommId{}) {
    ++counters_.malformed;
    return;
  }
  if (CMConnection* c = connections_.find_remote(in.frame.source, req.request_id)) {
    ++counters_.duplicates;
    if (c->sent_attribute == cm::Attribute::kSIDRREP) send_again(*c);
    return;
  }
  Listener* listener = listeners_.find(req.service_id, in.frame.destination);
  if (listener == nullptr) {
    ++counters_.unmatched;
    return answer(in, cm::SIDRREP{.request_id = req.request_id,
                                  .status = cm::SIDRStatus::kServiceIDNotSupported,
                                  .service_id = req.service_id});
  }
  if (listener->waiting >= listener->params.backlog) {
    ++counters_.backlog_drops;
    return;
  }
  if (!make_room()) {
    ++counters_.table_drops;
    return;
  }
  CMConnection& c = add_connection();
  c.remote_id = req.request_id;
  c.local_gid = in.frame.destination;
  c.remote_gid = in.frame.source;
  c.state = CMState::kSIDRREQReceived;
  c.user = listener->params.user;
  c.transaction_id = in.transaction_id;
  c.waits_at = listener->id;
  c.service_id = req.service_id;
  c.retire_time = cm_timeout(kDefaultCMResponseTimeout) * 2;  // the message carries no time
  connections_.index_remote(c);
  ++listener->waiting;
  tell(c, SIDRRequest{.listener = listener->id,
                      .local_gid = c.local_gid,
                      .remote_gid = c.remote_gid,
                      .req = req});
}

Status CMAgent::sidr_reply(CommId id, const SIDRReplyParams& p, Time now) {
  if (p.qpn.value > kMask24 || p.private_data.size() > cm::SIDRREP::kPrivateDataSize)
    return Status::kInvalidArgument;
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (c->state != CMState::kSIDRREQReceived) return Status::kInvalidArgument;
  answer_sidr(*c, p, now);
  return Status::kOk;
}

void CMAgent::answer_sidr(CMConnection& c, const SIDRReplyParams& p, Time now) {
  send(c, cm::SIDRREP{.request_id = c.remote_id,
                      .status = p.status,
                      .qpn = p.qpn,
                      .service_id = c.service_id,
                      .q_key = p.q_key,
                      .private_data = padded<cm::SIDRREP::kPrivateDataSize>(p.private_data)});
  retire(c, now);
}

void CMAgent::on_message(const Incoming& in, const cm::SIDRREP& rep) {
  CMConnection* c = from_peer(in, connections_.find(rep.request_id));
  if (c == nullptr) return;
  if (c->state != CMState::kSIDRREQSent) {
    ++counters_.duplicates;
    return;
  }
  tell(*c, SIDRReply{rep});
  connections_.remove(*c);
}

}  // namespace verbena
