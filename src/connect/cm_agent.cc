#include "connect/cm_agent.h"

#include "connect/cm_timeout.h"

namespace verbena {
namespace {

constexpr std::size_t kMADQueueSize = 64;
constexpr std::size_t kEventQueueSize = 64;
constexpr std::size_t kEventsOfOneCall = 2;  // at most: a stale or evicted connection, and the news
constexpr int kTimersOfOneCall = 32;

}  // namespace

CMAgent::CMAgent(const CMConfig& config)
    : config_(config),
      comm_ids_(config.process_slot),
      prng_(config.seed),
      listeners_(config.max_listeners),
      connections_(config.max_connections),
      mads_(kMADQueueSize),
      events_(kEventQueueSize) {
  CHECK(config.ca_ack_delay <= kMaxTimeoutField);
}

Result<ListenerId> CMAgent::listen(const ListenParams& params) { return listeners_.add(params); }

Status CMAgent::unlisten(ListenerId id) { return listeners_.remove(id); }

// --- input

void CMAgent::on_mad(const MADFrame& frame, Time now) {
  ++counters_.mads_received;
  const std::optional<cm::Message> message = cm::Message::decode(frame.mad);
  if (!message || frame.source_qp != kGSIQPN) {
    ++counters_.malformed;
    return;
  }
  if (events_.size() + kEventsOfOneCall > events_.capacity()) {
    ++counters_.output_drops;
    return;
  }
  const Incoming in{.frame = frame,
                    .transaction_id = message->transaction_id,
                    .attribute_modifier = message->attribute_modifier,
                    .now = now};
  std::visit([&](const auto& body) { on_message(in, body); }, message->body);
}

void CMAgent::on_timer(Time now) {
  for (int i = 0; i < kTimersOfOneCall; ++i) {
    if (mads_.full() || events_.full()) return;
    CMConnection* due = connections_.first_due(now);
    if (due == nullptr) return;
    expire(*due, now);
  }
}

void CMAgent::expire(CMConnection& c, Time now) {
  switch (c.state) {
    case CMState::kMRAREQReceived:
    case CMState::kMRAREPReceived:
      c.state = c.state == CMState::kMRAREQReceived ? CMState::kREQSent : CMState::kREPSent;
      [[fallthrough]];
    case CMState::kREQSent:
    case CMState::kREPSent:
    case CMState::kDREQSent:
    case CMState::kSIDRREQSent:
      if (c.retries_left == 0) return give_up(c, now);
      --c.retries_left;
      ++counters_.retries_sent;
      send_again(c);
      return connections_.arm(c, now + c.response_time);
    case CMState::kTimeWait: tell(c, TimeWaitExit{}); [[fallthrough]];
    case CMState::kRetired: return connections_.remove(c);
    case CMState::kREPReceived:
    case CMState::kMRAREPSent:
    case CMState::kREQReceived:
    case CMState::kMRAREQSent:
    case CMState::kEstablished:
    case CMState::kDREQReceived:
    case CMState::kSIDRREQReceived: break;  // waits for the program, without a limit
  }
  CHECK_UNREACHABLE();
}

void CMAgent::give_up(CMConnection& c, Time now) {
  if (c.state == CMState::kDREQSent) {
    disconnected(c, {.cause = DisconnectCause::kNoReply});
    return enter_time_wait(c, now);
  }
  if (c.state == CMState::kSIDRREQSent) {
    tell(c, Unreachable{Unanswered::kSIDRREQ});
    return connections_.remove(c);
  }
  tell(c, Unreachable{c.state == CMState::kREQSent ? Unanswered::kREQ : Unanswered::kREP});
  refuse_for_timeout(c, now);
}

// --- finding connections

// Finds a connection that the program may still name.
CMConnection* CMAgent::visible(CommId id) {
  CMConnection* c = connections_.find(id);
  return c == nullptr || c->abandoned || c->state == CMState::kRetired ? nullptr : c;
}

// Finds a connection that a message names by both IDs, and whose peer is the message's sender.
CMConnection* CMAgent::matched(const Incoming& in, CommId ours, CommId theirs) {
  CMConnection* c = from_peer(in, connections_.find(ours));
  if (c == nullptr || c->remote_id == theirs) return c;
  ++counters_.unmatched;
  return nullptr;
}

CMConnection* CMAgent::from_peer(const Incoming& in, CMConnection* c) {
  if (c == nullptr) {
    ++counters_.unmatched;
    return nullptr;
  }
  if (c->remote_gid == in.frame.source) return c;
  ++counters_.foreign;
  return nullptr;
}

// Makes room in a full table by evicting a lingering connection.
bool CMAgent::make_room() {
  if (!connections_.full()) return true;
  CMConnection* c = connections_.first_lingering();
  if (c == nullptr || events_.full()) return false;
  if (c->state == CMState::kTimeWait) tell(*c, TimeWaitExit{});
  connections_.remove(*c);
  return true;
}

CMConnection& CMAgent::add_connection() {
  CommId id = comm_ids_.draw(prng_);
  while (connections_.find(id) != nullptr) id = comm_ids_.draw(prng_);
  return connections_.add(id);
}

// --- output

// Keeps the message for repetitions.
void CMAgent::prepare(CMConnection& c, const cm::Body& body, u32 attribute_modifier) {
  c.sent_attribute = std::visit([](const auto& message) { return message.kAttribute; }, body);
  c.sent = cm::Message{.transaction_id = c.transaction_id,
                       .attribute_modifier = attribute_modifier,
                       .body = body}
               .encode();
}

void CMAgent::send(CMConnection& c, const cm::Body& body, u32 attribute_modifier) {
  prepare(c, body, attribute_modifier);
  send_again(c);
}

void CMAgent::send_again(const CMConnection& c) { transmit(c.local_gid, c.remote_gid, c.sent); }

// Answers the sender of the MAD without a connection.
void CMAgent::answer(const Incoming& in, const cm::Body& body) {
  transmit(in.frame.destination, in.frame.source,
           cm::Message{.transaction_id = in.transaction_id, .body = body}.encode());
}

void CMAgent::transmit(const GID& source, const GID& destination, const cm::MADBytes& mad) {
  if (mads_.full()) {
    ++counters_.output_drops;
    return;
  }
  ++counters_.mads_sent;
  mads_.push({.source = source, .destination = destination, .mad = mad});
}

void CMAgent::tell(const CMConnection& c, const What& what) {
  if (c.abandoned) return;
  events_.push({.id = c.local_id, .user = c.user, .what = what});
}

bool CMAgent::poll_mad(MADOut& out) {
  if (mads_.empty()) return false;
  out = mads_.pop();
  return true;
}

std::optional<CMEvent> CMAgent::poll_event() {
  if (events_.empty()) return std::nullopt;
  return events_.pop();
}

// --- steps of a life

void CMAgent::await_answer(CMConnection& c, Time now) {
  c.retries_left = c.max_retries;
  connections_.arm(c, now + c.response_time);
}

void CMAgent::stop_waiting(CMConnection& c) {
  if (!c.waits_at) return;
  if (Listener* listener = listeners_.find(*c.waits_at)) --listener->waiting;
  c.waits_at.reset();
}

Status CMAgent::take_request(CommId id) {
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  stop_waiting(*c);
  return Status::kOk;
}

// Makes the connection dead to the program, and keeps it while the peer may repeat a message that
// was answered. A connection that the peer cannot name again, because it never sent its ID, is not
// kept.
void CMAgent::retire(CMConnection& c, Time now) {
  stop_waiting(c);
  if (c.remote_id == CommId{}) return connections_.remove(c);
  connections_.unindex_qp(c);
  c.state = CMState::kRetired;
  connections_.linger(c, now + c.retire_time);
}

Status CMAgent::abandon(CommId id, Time now) {
  CMConnection* c = visible(id);
  if (c == nullptr) return Status::kNotFound;
  c->abandoned = true;
  switch (c->state) {
    case CMState::kREQSent:
    case CMState::kMRAREQReceived: refuse_for_timeout(*c, now); break;
    case CMState::kREPReceived:
    case CMState::kMRAREPSent:
    case CMState::kREQReceived:
    case CMState::kMRAREQSent:
    case CMState::kREPSent:
    case CMState::kMRAREPReceived: refuse(*c, {}, now); break;
    case CMState::kEstablished: send_dreq(*c, {}, now); break;
    case CMState::kDREQReceived: send_drep(*c, {}, now); break;
    case CMState::kDREQSent:
    case CMState::kTimeWait:
    case CMState::kRetired: break;
    case CMState::kSIDRREQSent: connections_.remove(*c); break;
    case CMState::kSIDRREQReceived: answer_sidr(*c, {.status = cm::SIDRStatus::kRejected}, now);
  }
  return Status::kOk;
}

}  // namespace verbena
