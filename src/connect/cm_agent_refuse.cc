// Refusals and requests for time, on both sides: REJ, MRA, and stale connections. IBTA Vol 1,
// 12.6.6, 12.6.7, 12.9.8.3.1, 12.9.8.5.
#include <algorithm>

#include "base/bytes.h"
#include "connect/cm_agent.h"
#include "connect/cm_timeout.h"
#include "connect/private_data.h"

namespace verbena {
namespace {

cm::Answered rejected_in(CMState state) {
  switch (state) {
    case CMState::kREQReceived:
    case CMState::kMRAREQSent: return cm::Answered::kREQ;
    case CMState::kREPReceived:
    case CMState::kMRAREPSent: return cm::Answered::kREP;
    case CMState::kREQSent:
    case CMState::kMRAREQReceived:
    case CMState::kREPSent:
    case CMState::kMRAREPReceived:
    case CMState::kEstablished:
    case CMState::kDREQSent:
    case CMState::kDREQReceived:
    case CMState::kTimeWait:
    case CMState::kRetired:
    case CMState::kSIDRREQSent:
    case CMState::kSIDRREQReceived: return cm::Answered::kOther;
  }
  CHECK_UNREACHABLE();
}

constexpr Duration kAskAgainInterval = ms(20);

// Returns true if nobody listens, but may soon.
bool may_yet_listen(const CMConnection& c, const cm::REJ& rej, Time now) {
  return c.state == CMState::kREQSent && rej.reason == cm::RejectReason::kInvalidServiceID &&
         now < c.patient_until;
}

bool is_connecting(CMState state) {
  switch (state) {
    case CMState::kREQSent:
    case CMState::kMRAREQReceived:
    case CMState::kREPReceived:
    case CMState::kMRAREPSent:
    case CMState::kREQReceived:
    case CMState::kMRAREQSent:
    case CMState::kREPSent:
    case CMState::kMRAREPReceived: return true;
    case CMState::kEstablished:
    case CMState::kDREQSent:
    case CMState::kDREQReceived:
    case CMState::kTimeWait:
    case CMState::kRetired:
    case CMState::kSIDRREQSent:
    case CMState::kSIDRREQReceived: return false;
  }
  CHECK_UNREACHABLE();
}

}  // namespace

Status CMAgent::reject(CommId id, const RejectParams& params, Time now) {
  if (params.ari.size() > cm::REJ::kARISize ||
      params.private_data.size() > cm::REJ::kPrivateDataSize)
    return Status::kInvalidArgument;
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (!is_connecting(c->state)) return Status::kInvalidArgument;
  refuse(*c, params, now);
  return Status::kOk;
}

void CMAgent::refuse(CMConnection& c, const RejectParams& params, Time now) {
  // A received request that is not answered yet has no ID of ours, as in Linux.
  const CommId local_id = c.state == CMState::kREQReceived ? CommId{} : c.local_id;
  send(c, cm::REJ{.local_comm_id = local_id,
                  .remote_comm_id = c.remote_id,
                  .message_rejected = rejected_in(c.state),
                  .reject_info_length = static_cast<u8>(params.ari.size()),
                  .reason = params.reason,
                  .ari = padded<cm::REJ::kARISize>(params.ari),
                  .private_data = padded<cm::REJ::kPrivateDataSize>(params.private_data)});
  retire(c, now);
}

void CMAgent::refuse_for_timeout(CMConnection& c, Time now) {
  std::array<u8, sizeof(u64)> guid;
  store_be64(guid.data(), config_.ca_guid.value);
  refuse(c, {.reason = cm::RejectReason::kTimeout, .ari = guid}, now);
}

// The peer uses its QP in another connection: releases this one. 12.9.8.3.1
void CMAgent::drop_stale(CMConnection& c, Time now) {
  ++counters_.stale_connections;
  if (is_connecting(c.state)) {
    tell(c, Rejected{cm::REJ{.reason = cm::RejectReason::kStaleConnection}});
    return refuse(c, {.reason = cm::RejectReason::kStaleConnection}, now);
  }
  CHECK(c.state == CMState::kEstablished);  // the index has QPs of this state only
  disconnected(c, {.cause = DisconnectCause::kStale});
  send_dreq(c, {}, now);
}

// Finds the connection of a REJ. A peer that gave up before it learned our ID names only its own.
CMConnection* CMAgent::rejected(const Incoming& in, const cm::REJ& rej) {
  CMConnection* c = rej.remote_comm_id == CommId{}
                        ? connections_.find_remote(in.frame.source, rej.local_comm_id)
                        : connections_.find(rej.remote_comm_id);
  c = from_peer(in, c);
  if (c == nullptr) return nullptr;
  const bool waits_for_rep = c->state == CMState::kREQSent || c->state == CMState::kMRAREQReceived;
  const bool fits = rej.message_rejected == cm::Answered::kREQ || c->remote_id == CommId{}
                        ? waits_for_rep
                        : rej.local_comm_id == c->remote_id;
  if (fits) return c;
  ++counters_.unmatched;
  return nullptr;
}

// The peer lives: counts its retries anew.
void CMAgent::ask_again(CMConnection& c, Time now) {
  c.retries_left = std::max<u8>(c.max_retries, 1);
  connections_.arm(c, now + kAskAgainInterval);
}

void CMAgent::on_message(const Incoming& in, const cm::REJ& rej) {
  CMConnection* c = rejected(in, rej);
  if (c == nullptr) return;
  if (may_yet_listen(*c, rej, in.now)) return ask_again(*c, in.now);
  if (is_connecting(c->state)) {
    tell(*c, Rejected{rej});
    return retire(*c, in.now);
  }
  if (c->state == CMState::kEstablished || c->state == CMState::kDREQSent) {
    disconnected(*c, {.cause = DisconnectCause::kRejected});
    return enter_time_wait(*c, in.now);
  }
  ++counters_.duplicates;
}

Status CMAgent::mra(CommId id, const MRAParams& params) {
  if (params.service_timeout > kMaxTimeoutField ||
      params.private_data.size() > cm::MRA::kPrivateDataSize)
    return Status::kInvalidArgument;
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (c->state != CMState::kREQReceived && c->state != CMState::kREPReceived)
    return Status::kInvalidArgument;
  prepare(*c, cm::MRA{.local_comm_id = c->local_id,
                      .remote_comm_id = c->remote_id,
                      .message_mraed = rejected_in(c->state),
                      .service_timeout = params.service_timeout,
                      .private_data = padded<cm::MRA::kPrivateDataSize>(params.private_data)});
  c->state = c->state == CMState::kREQReceived ? CMState::kMRAREQSent : CMState::kMRAREPSent;
  if (params.when == MRATime::kNow) send_again(*c);
  return Status::kOk;
}

void CMAgent::on_message(const Incoming& in, const cm::MRA& mra) {
  const bool for_req = mra.message_mraed == cm::Answered::kREQ;
  CMConnection* c = for_req ? from_peer(in, connections_.find(mra.remote_comm_id))
                            : matched(in, mra.remote_comm_id, mra.local_comm_id);
  if (c == nullptr) return;
  if (for_req && c->state == CMState::kREQSent) {
    c->state = CMState::kMRAREQReceived;
  } else if (mra.message_mraed == cm::Answered::kREP && c->state == CMState::kREPSent) {
    c->state = CMState::kMRAREPReceived;
  } else {
    ++counters_.duplicates;
    return;
  }
  connections_.arm(*c, in.now + cm_response_time(mra.service_timeout, c->packet_life_time));
  tell(*c, ReceiptAcknowledged{mra});
}

}  // namespace verbena
