#include "device/qp/engine_runner.h"

#include <utility>

#include "device/objects/xrc_domain.h"
#include "transport/rc/engine.h"

namespace verbena {
namespace {

constexpr u32 bit(EngineEvent event) { return 1u << static_cast<u32>(event); }
constexpr u32 kReportedFaults = bit(EngineEvent::kRequestError) | bit(EngineEvent::kAccessError);

bool completes_at(const QueuePair& qp, const CompletionQueue& cq) {
  return qp.init.send_cq == &cq || qp.init.receive_cq == &cq;
}

// Whether what is posted would be flushed into a CQ that takes no more CQEs: the program would
// never hear of it, so the request is refused.
bool would_vanish(const QueuePair& qp, const CompletionQueue* cq) {
  return qp.attributes.state == QPState::kError && cq != nullptr && cq->overrun();
}

bool is_error(const CQE& cqe) {
  return cqe.status != WQEStatus::kSuccess && cqe.status != WQEStatus::kFlushed;
}

}  // namespace

EngineRunner::EngineRunner(const DeviceConfig& config, const QPTable& qps,
                           const ObjectTable<SharedReceiveQueue>& srqs, AsyncEventQueue& events,
                           const ProtectionTable& memory)
    : config_(config),
      qps_(qps),
      entries_(qps, srqs),
      events_(events),
      far_(memory.far()),
      copies_(memory.copies()),
      egress_(config.egress),
      pacer_(config.pacing, egress_),
      timers_(&QueuePair::timer_position) {}

void EngineRunner::on_created(u32 qp_count) {
  timers_.reserve(qp_count);
  egress_.reserve(qp_count);
}

void EngineRunner::begin_flow(QueuePair& qp) {
  if (is_connected(qp.attributes.type)) pacer_.begin(qp, config_.congestion);
}

PostError EngineRunner::post_send(QueuePair& qp, const SendWR& wr, Time now) {
  if (would_vanish(qp, qp.init.send_cq)) return PostError::kBadState;
  const PostError error = qp.engine->post_send(wr, now);
  if (error == PostError::kOk) on_posted(qp, now);
  return error;
}

// In RTS a request does no more than wait for its turn: nothing comes out of it, and no timer
// moves.
void EngineRunner::on_posted(QueuePair& qp, Time now) {
  if (qp.attributes.state == QPState::kRTS)
    activate(qp);
  else
    settle(qp, now);
}

// A timer that was armed already is not too late.
void EngineRunner::on_sent_at_once(QueuePair& qp) {
  if (!qp.timer_armed) set_timer(qp, qp.rc->next_timer());
}

PostError EngineRunner::post_sends(QueuePair& qp, std::span<const SendWR> wrs, Time now) {
  if (would_vanish(qp, qp.init.send_cq)) return PostError::kBadState;
  u32 posted = 0;
  for (const SendWR& wr : wrs) {
    const PostError error = qp.engine->post_send(wr, now);
    if (error != PostError::kOk) {
      qp.engine->take_back_sends(posted);
      return error;
    }
    ++posted;
  }
  on_posted(qp, now);
  return PostError::kOk;
}

PostError EngineRunner::post_receive(QueuePair& qp, const RecvWR& wr, Time now) {
  if (!qp.own_receive_queue.has_value() || is_xrc(qp.attributes.type) ||
      qp.attributes.state == QPState::kReset || would_vanish(qp, qp.init.receive_cq))
    return PostError::kBadState;
  const PostError error = qp.own_receive_queue->push(wr);
  if (error != PostError::kOk) return error;
  // In Error it is flushed at once.
  if (qp.engine->on_receive_posted(now) || qp.attributes.state == QPState::kError) settle(qp, now);
  return PostError::kOk;
}

void EngineRunner::on_packet(QueuePair& qp, const PacketView& packet, const RxContext& context,
                             Time now) {
  qp.datagrams->on_packet(packet, context, now);
  pacer_.on_packet(qp, now);
  if (traits_of(packet.headers.bth.opcode).request) egress_.on_request(qp);
  settle(qp, now);
}

// As on_packet() with what it calls, where the engine has completions and no events.
bool EngineRunner::take_send(QueuePair& qp, const PacketView& packet, Time now) {
  if (copies_.has_staging() && qp.copies.is_waiting()) return false;
  const std::optional<u8*> to = qp.rc->expects_send(packet);
  if (!to) return false;
  deliver_sends(qp, now);
  CompletionQueue& cq = *qp.init.receive_cq;
  CQE& cqe = cq.next();
  if (!qp.rc->take_send(packet, *to, cqe)) return false;
  cqe.completed_at = now;
  count_receive(qp, cqe);
  deliver(cq, cqe);
  pacer_.on_packet(qp, now);
  egress_.on_request(qp);
  egress_.activate(qp);
  may_send_ |= qp.rc->may_send();
  raise_srq_limit(qp);
  set_timer(qp, qp.rc->next_timer());
  fail_qps_of_overrun_cqs(now);
  return true;
}

bool EngineRunner::take_train(QueuePair& qp, const PacketView& packet, u32 packets, Time now) {
  if (!qp.rc->take_train(packet, packets)) return false;
  pacer_.on_packet(qp, now);
  egress_.on_request(qp);
  settle(qp, now);
  return true;
}

void EngineRunner::deliver_sends(QueuePair& qp, Time now) {
  CompletionQueue& cq = *qp.init.send_cq;
  while (qp.rc->may_complete_send()) {
    CQE& cqe = cq.next();
    if (!qp.rc->poll_send_cqe(cqe)) return;
    cqe.completed_at = now;
    deliver(cq, cqe);
  }
}

// Each entry is looked at once per call, so that an engine which is always due cannot hold us here.
void EngineRunner::on_timer(Time now) {
  notifications_.on_timer(now);
  for (u32 left = timers_.size(); left != 0; --left) {
    QueuePair* const qp = timers_.pop_due(now);
    if (qp == nullptr) return;
    const Time deadline = deadline_of(*qp);
    if (deadline > now) {
      timers_.update(*qp, deadline);
    } else {
      if (qp->copies.look_at <= now) look_at_copies(*qp, now);
      qp->engine->on_timer(now);
      settle(*qp, now);
    }
  }
}

// A QP with deferred work has a timer that is due soon. A full scan that finds nothing is
// expensive: among a thousand QPs some always have such a timer.
bool EngineRunner::run_deferred(Time now) {
  if (!std::exchange(may_have_deferred_, false)) return false;
  bool any = false;
  for (u32 left = timers_.size(); left != 0; --left) {
    QueuePair* const qp = timers_.pop_due(now + kDeferral);
    if (qp == nullptr) break;
    if (qp->engine->run_deferred(now)) {
      any = true;
      settle(*qp, now);
    } else {
      timers_.update(*qp, deadline_of(*qp));
    }
  }
  return any;
}

void EngineRunner::enter(QueuePair& qp, QPState to, Time now) {
  if (to != qp.attributes.state)
    set_state(qp, to, now);
  else
    publish(qp);
  settle(qp, now);
}

void EngineRunner::reset(QueuePair& qp, const QPAttributes& initial, Time now) {
  const QPState from = qp.attributes.state;
  qp.attributes = initial;
  CHECK(qp.attributes.state == QPState::kReset);
  qp.engine->on_state(from, now);
  if (qp.own_receive_queue.has_value()) qp.own_receive_queue->clear();
  qp.notify_when_drained = false;
  forget(qp);
  begin_flow(qp);
}

void EngineRunner::fail(QueuePair& qp, Time now) {
  const QPState state = qp.attributes.state;
  if (state == QPState::kReset || state == QPState::kError) return;
  raise(qp, AsyncEventType::kQPFatal);
  set_state(qp, QPState::kError, now);
  settle(qp, now);
}

void EngineRunner::overrun(CompletionQueue& cq, Time now) {
  if (!cq.force_overrun()) return;
  on_overrun(cq);
  fail_qps_of_overrun_cqs(now);
}

void EngineRunner::forget(QueuePair& qp) {
  if (config_.local.qps != nullptr) config_.local.qps->withdraw(qp.attributes.qpn);
  egress_.remove(qp);
  timers_.remove(qp);
  qp.timer_armed = false;
  events_.forget(qp.events);
  qp.engine->give_back_receives();
  if (qp.init.srq != nullptr) qp.init.srq->queue().free_entries(qp.copies.held_receives.size());
  qp.copies.clear();
  for (CompletionQueue* const cq : {qp.init.send_cq, qp.init.receive_cq}) {
    const u32 receives = cq != nullptr ? cq->remove(qp.attributes.qpn) : 0;
    if (qp.init.srq != nullptr) qp.init.srq->queue().free_entries(receives);
  }
}

// A QP that is held to a rate sends single packets at intervals, and no trains.
QueuePair* EngineRunner::poll_packet(Time now, Trains trains, TxPacket& out) {
  for (;;) {
    const EgressScheduler::Turn turn = egress_.turn(now);
    if (turn.qp == nullptr) may_send_ = false;
    if (turn.qp == nullptr) return nullptr;
    const bool may_be_train =
        trains == Trains::kYes && turn.what == MaySend::kAnything && !turn.qp->paced;
    if (take(turn, may_be_train ? MaySend::kTrains : turn.what, now, out)) return turn.qp;
  }
}

// A QP that the driver has paused waits for resume().
QueuePair* EngineRunner::poll_stream(Time now) {
  for (;;) {
    const EgressScheduler::Turn turn = egress_.turn(now);
    if (turn.qp == nullptr) {
      may_send_ = false;
      return nullptr;
    }
    egress_.on_idle(turn);
    if (turn.what == MaySend::kAnything) return turn.qp;
  }
}

void EngineRunner::on_stream_output(QueuePair& qp, MayContinue may_continue, Time now) {
  if (may_continue == MayContinue::kYes) activate(qp);
  collect(qp, now);
  fail_qps_of_overrun_cqs(now);
}

QueuePair* EngineRunner::poll_acknowledgement(Time now, TxPacket& out) {
  for (;;) {
    const EgressScheduler::Turn turn = egress_.acknowledging();
    if (turn.qp == nullptr || take(turn, turn.what, now, out)) return turn.qp;
  }
}

// Takes the packet of the QP's turn. Returns false if it has none.
bool EngineRunner::take(const EgressScheduler::Turn& turn, MaySend what, Time now, TxPacket& out) {
  if (turn.qp->engine->is_idle()) {
    egress_.on_idle(turn);
    return false;
  }
  out.packets = 1;
  const bool sent = turn.qp->datagrams->poll_packet(now, what, out);
  if (sent) {
    egress_.on_sent(turn, out.packets);
    collect_after_packet(*turn.qp, now);
  } else {
    egress_.on_idle(turn);
    collect(*turn.qp, now);
  }
  fail_qps_of_overrun_cqs(now);
  return sent;
}

// Handles the outputs after an input, and their consequences. An idle QP takes a place among the
// active ones as well, so that the order of turns does not depend on when each is asked.
void EngineRunner::settle(QueuePair& qp, Time now) {
  egress_.activate(qp);
  collect(qp, now);
  fail_qps_of_overrun_cqs(now);
}

void EngineRunner::collect(QueuePair& qp, Time now) {
  EngineOutputs out = qp.engine->outputs();
  if (out.reports()) out = drain(qp, out, now);
  may_send_ |= out.packet;
  raise_srq_limit(qp);
  if (copies_.has_staging() && qp.copies.look_at == Time::never() && qp.copies.is_waiting())
    qp.copies.look_at = now + QPCopies::kPeriod;
  const Time deadline = deadline_of(qp);
  may_have_deferred_ |= deadline <= now + kDeferral;
  set_timer(qp, deadline);
}

void EngineRunner::raise_srq_limit(const QueuePair& qp) {
  if (qp.init.srq != nullptr && qp.init.srq->take_limit_reached())
    events_.raise(qp.init.srq->events, AsyncEventType::kSRQLimitReached);
}

// The same where only a packet has come out: a timer that was armed already is not too late then,
// as a rule.
void EngineRunner::collect_after_packet(QueuePair& qp, Time now) {
  const EngineOutputs out = qp.engine->outputs();
  if (!qp.timer_armed || out.sooner_timer || out.reports()) collect(qp, now);
}

EngineOutputs EngineRunner::drain(QueuePair& qp, EngineOutputs out, Time now) {
  for (;;) {
    const bool reported = drain_cqes(qp, out, now);
    const u32 event_bits = out.event ? drain_events(qp) : 0;
    if (event_bits == 0) return out;
    follow(qp, event_bits, reported, now);
    out = qp.engine->outputs();
  }
}

// Whether any CQE reports an error: then the application knows, and needs no event. `out`: what may
// still come.
bool EngineRunner::drain_cqes(QueuePair& qp, EngineOutputs& out, Time now) {
  bool reported = false;
  for (; out.send_cqe && poll_send_cqe(qp, now, reported); out = qp.engine->outputs()) {
  }
  if (out.receive_cqe) drain_receive_cqes(qp, out, reported, now);
  return reported;
}

void EngineRunner::drain_receive_cqes(QueuePair& qp, EngineOutputs& out, bool& reported, Time now) {
  if (qp.init.receive_cq == nullptr) {  // of XRC
    for (CQE cqe; poll_receive_cqe(qp, cqe, reported);) take_receive_cqe(qp, cqe, now);
  } else {
    for (; out.receive_cqe; out = qp.engine->outputs()) {
      CQE& cqe = qp.init.receive_cq->next();
      if (!poll_receive_cqe(qp, cqe, reported)) break;
      take_receive_cqe(qp, cqe, now);
    }
  }
  if (out.receive_cqe) out = qp.engine->outputs();  // what was kept may have been refused
}

// `cqe` was polled just now. Requests that the engine had kept may have executed then, and have
// begun copies; the CQE of one before them waits for these too, which is longer than it must.
void EngineRunner::take_receive_cqe(QueuePair& qp, CQE& cqe, Time now) {
  QPCopies& copies = qp.copies;
  if (waits(copies.receives, copies.held_receives)) [[unlikely]]
    return copies.held_receives.push(cqe, copies.receives.begun());
  deliver_receive(qp, cqe, now);
}

// `cqe` is next() of the CQ, if the QP has one for receives.
void EngineRunner::deliver_receive(QueuePair& qp, CQE& cqe, Time now) {
  cqe.completed_at = now;
  count_receive(qp, cqe);
  if (qp.init.receive_cq == nullptr)
    deliver_to_srq(qp, cqe, now);
  else
    deliver(*qp.init.receive_cq, cqe);
}

void EngineRunner::deliver_held(QueuePair& qp, Time now) {
  QPCopies& copies = qp.copies;
  while (const CQE* const held = copies.held_sends.ready(copies.sends)) {
    CQE& cqe = qp.init.send_cq->next();
    cqe = *held;
    cqe.completed_at = now;
    copies.held_sends.pop();
    deliver(*qp.init.send_cq, cqe);
  }
  while (const CQE* const held = copies.held_receives.ready(copies.receives)) {
    CQE of_xrc;
    CQE& cqe = qp.init.receive_cq == nullptr ? of_xrc : qp.init.receive_cq->next();
    cqe = *held;
    copies.held_receives.pop();
    deliver_receive(qp, cqe, now);
  }
}

// A completion that is still held reports the failure; otherwise the engine does. The writes behind
// the failed one are forgotten: the QP ends. UC goes on: a WRITE that failed is not reported.
void EngineRunner::follow_failed_copies(QueuePair& qp, Time now) {
  QPCopies& copies = qp.copies;
  bool is_told = false;
  if (const auto failure = copies.sends.failure()) {
    is_told = copies.held_sends.fail_from(failure->ticket, WQEStatus::kLocalProtection);
    if (!is_told) qp.engine->on_send_copy_failed();
    copies.sends.clear();
  }
  if (const auto failure = copies.receives.failure()) {
    const bool is_receive = failure->mark.is_receive;
    qp.engine->on_receive_copy_failed(failure->mark);
    if (is_receive || qp.attributes.type != QPType::kUC)
      is_told |=
          copies.held_receives.fail_from(
              failure->ticket, is_receive ? WQEStatus::kLocalProtection : WQEStatus::kFlushed) &&
          is_receive;
    copies.receives.clear();
  }
  const QPState state = qp.attributes.state;
  if (is_told && state != QPState::kError && state != QPState::kReset)
    set_state(qp, QPState::kError, now);
}

void EngineRunner::look_at_copies(QueuePair& qp, Time now) {
  qp.copies.look_at = Time::never();  // until collect() finds that something still runs
  copies_.poll(far_, qp.copies.sends);
  copies_.poll(far_, qp.copies.receives);
  follow_failed_copies(qp, now);
  deliver_held(qp, now);
}

bool EngineRunner::poll_send_cqe(QueuePair& qp, Time now, bool& reported) {
  CompletionQueue& cq = *qp.init.send_cq;
  CQE& cqe = cq.next();
  if (!qp.engine->poll_send_cqe(cqe)) return false;
  reported |= is_error(cqe);
  if (waits(qp.copies.sends, qp.copies.held_sends)) [[unlikely]] {
    qp.copies.held_sends.push(cqe, qp.copies.sends.begun());
    return true;
  }
  cqe.completed_at = now;
  deliver(cq, cqe);
  return true;
}

bool EngineRunner::poll_receive_cqe(QueuePair& qp, CQE& cqe, bool& reported) {
  if (!qp.engine->poll_receive_cqe(cqe)) return false;
  reported |= is_error(cqe);
  return true;
}

// Completes a receive of an XRC target in the CQ of the SRQ. A destroyed SRQ takes no completions.
// The QP has no CQ of its own that could fail, so an overrun is charged to the QP that caused it.
void EngineRunner::deliver_to_srq(QueuePair& qp, const CQE& cqe, Time now) {
  SharedReceiveQueue* const srq = qp.init.xrcd->srq(cqe.srq);
  if (srq == nullptr) return;
  CQE& to = srq->cq->next();
  to = cqe;
  deliver(*srq->cq, to);
  if (srq->take_limit_reached()) events_.raise(srq->events, AsyncEventType::kSRQLimitReached);
  if (!srq->cq->overrun() || qp.attributes.state == QPState::kError) return;
  raise(qp, AsyncEventType::kQPFatal);
  set_state(qp, QPState::kError, now);
}

// `cqe` has been made in place: it is cq.next().
void EngineRunner::deliver(CompletionQueue& cq, CQE& cqe) {
  if (cq.overwrites()) {
    entries_.free({&cqe, 1});
    cqe.entries = 0;
  }
  switch (cq.push()) {
    case CQPush::kAdded: return;
    case CQPush::kDropped: return lose(cq, cqe);
    case CQPush::kNotificationDue: notifications_.on_due(cq); return;
    case CQPush::kNotificationLater: notifications_.on_later(cq); return;
    case CQPush::kOverrun: on_overrun(cq); return lose(cq, cqe);
  }
  CHECK_UNREACHABLE();
}

// A QP that completes at a failed CQ fails, even if it was made or reset since the CQ failed.
void EngineRunner::lose(CompletionQueue& cq, const CQE& cqe) {
  entries_.free({&cqe, 1});
  overrun_.push_back(cq);
}

void EngineRunner::on_overrun(CompletionQueue& cq) {
  events_.raise(cq.events, AsyncEventType::kCQError);
  overrun_.push_back(cq);
}

u32 EngineRunner::drain_events(QueuePair& qp) {
  u32 event_bits = 0;
  while (const std::optional<EngineEvent> event = qp.engine->poll_event())
    event_bits |= bit(*event);
  return event_bits;
}

// kQPFatal is for errors that neither a CQE nor another event reports. IBTA 11.6.3.2
void EngineRunner::follow(QueuePair& qp, u32 event_bits, bool reported, Time now) {
  const auto has = [event_bits](EngineEvent event) { return (event_bits & bit(event)) != 0; };
  if (has(EngineEvent::kCommunicationEstablished)) {
    raise(qp, AsyncEventType::kCommunicationEstablished);
    if (config_.local.qps != nullptr) config_.local.qps->on_established(qp.attributes);
  }
  if (has(EngineEvent::kSQDrained) && std::exchange(qp.notify_when_drained, false))
    raise(qp, AsyncEventType::kSQDrained);
  if (has(EngineEvent::kRequestError)) raise(qp, AsyncEventType::kQPRequestError);
  if (has(EngineEvent::kAccessError)) raise(qp, AsyncEventType::kQPAccessError);
  const QPState state = qp.attributes.state;
  if (has(EngineEvent::kEnded) && !has(EngineEvent::kFatal) && state != QPState::kError) {
    set_state(qp, QPState::kError, now);
  } else if (has(EngineEvent::kFatal) && state != QPState::kError) {
    if (!reported && (event_bits & kReportedFaults) == 0) raise(qp, AsyncEventType::kQPFatal);
    set_state(qp, QPState::kError, now);
  } else if (has(EngineEvent::kSQError) && (state == QPState::kRTS || state == QPState::kSQD)) {
    set_state(qp, QPState::kSQE, now);
  }
}

// IBTA 11.6.3.1: a QP that enters Error takes nothing more from its SRQ.
void EngineRunner::set_state(QueuePair& qp, QPState to, Time now) {
  const QPState from = qp.attributes.state;
  qp.attributes.state = to;
  publish(qp);
  qp.engine->on_state(from, now);
  if (to == QPState::kError && qp.init.srq != nullptr) raise(qp, AsyncEventType::kQPLastWQEReached);
  activate(qp);
}

void EngineRunner::publish(const QueuePair& qp) {
  if (config_.local.qps != nullptr) config_.local.qps->update(qp.attributes);
}

void EngineRunner::fail_qps_of(const CompletionQueue& cq, Time now) {
  qps_.for_each([&](QueuePair& qp) {
    const QPState state = qp.attributes.state;
    if (!completes_at(qp, cq) || state == QPState::kReset || state == QPState::kError) return;
    raise(qp, AsyncEventType::kQPFatal);
    set_state(qp, QPState::kError, now);
    collect(qp, now);
  });
}

}  // namespace verbena
