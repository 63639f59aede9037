// The end of a connection: DREQ, DREP and TimeWait; and LAP, which is refused. IBTA Vol 1, 12.9.7,
// 12.9.8.3.2, 12.8.
#include <algorithm>

#include "connect/cm_agent.h"
#include "connect/private_data.h"

namespace verbena {

Status CMAgent::disconnect(CommId id, std::span<const u8> private_data, Time now) {
  if (private_data.size() > cm::DREQ::kPrivateDataSize) return Status::kInvalidArgument;
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (c->state != CMState::kEstablished) return Status::kInvalidArgument;
  send_dreq(*c, private_data, now);
  return Status::kOk;
}

void CMAgent::send_dreq(CMConnection& c, std::span<const u8> private_data, Time now) {
  connections_.unindex_qp(
      c);  // a peer that has finished may use its QP again before this side knows
  c.state = CMState::kDREQSent;
  c.transaction_id = prng_.next();
  send(c, cm::DREQ{.local_comm_id = c.local_id,
                   .remote_comm_id = c.remote_id,
                   .remote_qpn = c.remote_qpn,
                   .private_data = padded<cm::DREQ::kPrivateDataSize>(private_data)});
  await_answer(c, now);
}

Status CMAgent::reply_disconnect(CommId id, std::span<const u8> private_data, Time now) {
  if (private_data.size() > cm::DREP::kPrivateDataSize) return Status::kInvalidArgument;
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  if (c->state != CMState::kDREQReceived) return Status::kInvalidArgument;
  send_drep(*c, private_data, now);
  return Status::kOk;
}

void CMAgent::send_drep(CMConnection& c, std::span<const u8> private_data, Time now) {
  send(c, cm::DREP{.local_comm_id = c.local_id,
                   .remote_comm_id = c.remote_id,
                   .private_data = padded<cm::DREP::kPrivateDataSize>(private_data)});
  enter_time_wait(c, now);
}

void CMAgent::disconnected(CMConnection& c, const Disconnected& what) {
  if (c.disconnect_told) return;
  c.disconnect_told = true;
  tell(c, what);
}

void CMAgent::enter_time_wait(CMConnection& c, Time now) {
  connections_.unindex_qp(c);
  c.state = CMState::kTimeWait;
  connections_.linger(c, now + c.time_wait);
}

void CMAgent::on_message(const Incoming& in, const cm::DREQ& dreq) {
  CMConnection* c = connections_.find(dreq.remote_comm_id);
  if (c != nullptr && from_peer(in, c) == nullptr) return;
  const cm::DREP nothing_more{.local_comm_id = dreq.remote_comm_id,
                              .remote_comm_id = dreq.local_comm_id};
  if (c == nullptr || c->remote_id != dreq.local_comm_id) {
    ++counters_.unmatched;  // ended here long ago: the answer lets the peer end it too
    return answer(in, nothing_more);
  }
  if (c->local_qpn != dreq.remote_qpn) {
    ++counters_.unmatched;
    return;
  }
  Disconnected what;
  std::ranges::copy(dreq.private_data, what.private_data.begin());
  switch (c->state) {
    case CMState::kEstablished:
    case CMState::kREPSent:  // its RTU is lost
    case CMState::kMRAREPReceived:
    case CMState::kREPReceived:
    case CMState::kMRAREPSent:
      connections_.disarm(*c);
      connections_.unindex_qp(*c);
      c->state = CMState::kDREQReceived;
      c->transaction_id = in.transaction_id;
      return disconnected(*c, what);
    case CMState::kDREQSent:  // both sent a DREQ
      c->transaction_id = in.transaction_id;
      what.cause = DisconnectCause::kCrossed;
      disconnected(*c, what);
      return send_drep(*c, {}, in.now);
    case CMState::kTimeWait:
      ++counters_.duplicates;
      return c->sent_attribute == cm::Attribute::kDREP ? send_again(*c) : answer(in, nothing_more);
    case CMState::kDREQReceived: ++counters_.duplicates; return;  // waits for the program's reply
    case CMState::kRetired:
    case CMState::kREQSent:
    case CMState::kMRAREQReceived:
    case CMState::kREQReceived:
    case CMState::kMRAREQSent:
    case CMState::kSIDRREQSent:
    case CMState::kSIDRREQReceived: ++counters_.unmatched; return answer(in, nothing_more);
  }
}

void CMAgent::on_message(const Incoming& in, const cm::DREP& drep) {
  CMConnection* c = matched(in, drep.remote_comm_id, drep.local_comm_id);
  if (c == nullptr) return;
  if (c->state != CMState::kDREQSent) {
    ++counters_.duplicates;
    return;
  }
  disconnected(*c, {.cause = DisconnectCause::kReplied, .private_data = drep.private_data});
  enter_time_wait(*c, in.now);
}

// Alternate paths are not supported. 12.8.2.1
void CMAgent::on_message(const Incoming& in, const cm::LAP& lap) {
  CMConnection* c = connections_.find(lap.remote_comm_id);
  if (c != nullptr && from_peer(in, c) == nullptr) return;
  const bool known =
      c != nullptr && c->state == CMState::kEstablished && c->remote_id == lap.local_comm_id;
  answer(in, cm::APR{.local_comm_id = lap.remote_comm_id,
                     .remote_comm_id = lap.local_comm_id,
                     .status = known ? cm::APRStatus::kNotSupported
                                     : cm::APRStatus::kInvalidCommunicationID});
}

void CMAgent::on_message(const Incoming&, const cm::APR&) {
  ++counters_.unmatched;  // this side never sends a LAP
}

}  // namespace verbena
