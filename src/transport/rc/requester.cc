#include "transport/rc/requester.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "transport/completions.h"
#include "transport/local_operations.h"
#include "transport/rc/answer.h"

namespace verbena {

namespace {

constexpr u32 kLongRun = 16;  // requests in a row without a requested completion

bool may_send_in(QPState state) { return state == QPState::kRTS || state == QPState::kSQD; }

}  // namespace

RCRequester::RCRequester(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters,
                         RequesterFault& fault)
    : qp_(parts.attributes),
      memory_(parts.memory),
      limits_(limits),
      counters_(counters),
      copies_(parts.send_copies),
      window_(parts.send_limits, limits_),
      flight_(parts, limits_),
      peer_(qp_),
      ack_requests_(limits_),
      builder_(parts, limits_),
      local_(parts, limits_, counters),
      recovery_(qp_, limits_.path),
      completer_(parts, counters, fault) {}

PostError RCRequester::post(const SendWR& wr, Time now) {
  if (!may_send_in(qp_.state) && qp_.state != QPState::kError && qp_.state != QPState::kSQE)
    return PostError::kBadState;
  if (returns_data(wr.op) && wr.inline_data) return PostError::kBadOpcode;
  if (wr.op == SendOp::kFlush && !wr.sg_list.empty()) return PostError::kTooManySGEs;
  if (answer_to(wr.op) == Answer::kOriginal || wr.op == SendOp::kAtomicWrite) {
    u64 room = 0;
    for (const SGE& sge : wr.sg_list) room += sge.length;
    if (room != kAtomicBytes) return PostError::kUnaligned;
  }
  return window_.queue().push(wr, now);
}

// --- states

void RCRequester::reset() {
  window_.clear();
  peer_.reset();
  ack_requests_.restart();
  unawaited_ = 0;
  recovery_.reset();
  local_.reset();
  completer_.reset();
}

void RCRequester::begin(Time now) {
  const u32 window = limits_.window(mtu());
  flight_.begin(window, qp_.sq_psn);
  window_.begin(qp_.sq_psn, RCLimits::chunk(window));
  recovery_.begin(now);
  local_.find_peer();
}

void RCRequester::on_state(QPState from, Time now) {
  enter(from, now);
  note_waiting();
}

void RCRequester::enter(QPState from, Time now) {
  switch (qp_.state) {
    case QPState::kReset: reset(); return;
    case QPState::kRTS:
      if (from == QPState::kRTR) begin(now);
      return;
    case QPState::kSQD:
      completer_.on_drain();
      resend_unacknowledged();  // the last packet may not have asked for an ACK
      return;
    case QPState::kError:
      completer_.on_error_state(now);
      recovery_.end_pause();
      if (const std::optional<u64> first = local_.give_up()) window_.withdraw_done(*first);
      return;
    case QPState::kSQE: recovery_.end_pause(); return;
    case QPState::kInit:
    case QPState::kRTR: return;
  }
}

// --- what may start

// Returns what is in flight, as far as copies and new requests have to wait for it.
InFlight RCRequester::in_flight() const {
  if (!window_.waits_for_response()) return InFlight::kNothing;
  const bool only_acks = !window_.resends() && !peer_.owes_answers() && ack_requests_.has_asked();
  return only_acks ? InFlight::kAcknowledgements : InFlight::kWork;
}

bool RCRequester::may_start(const SendWQE& wqe) const {
  if (qp_.state == QPState::kSQD || local_.is_refused() || local_.is_copying()) return false;
  if (wqe.wr.fence && peer_.owes_answers()) return false;
  if (!peer_.may_ask(wqe.wr.op) && !peer_.never_asks(wqe.wr.op)) return false;
  if (!window_.waits_for_response()) return true;
  if (local_.should_wait(window_, wqe, in_flight())) return false;
  // Without a credit, one message at a time may still leave, to learn of new credits. IBTA
  // 9.7.7.2.5
  return peer_.has_credit(wqe.wr.op);
}

// Returns how many PSNs the WQE takes: a READ takes those of its responses.
u32 RCRequester::psns_of(const SendWQE& wqe) const {
  const bool is_single = expects_response(wqe.wr.op) && wqe.wr.op != SendOp::kRDMARead;
  return is_single || wqe.length_bytes <= mtu() ? 1 : (wqe.length_bytes - 1) / mtu() + 1;
}

// Handles the WQE at the cursor as far as it needs no packet.
RCRequester::Step RCRequester::step(Time now) {
  if (window_.is_at_fresh()) return start(now);
  if (window_.current().packets != 0) return Step::kPacket;
  window_.pass_local();
  return Step::kNext;
}

RCRequester::Step RCRequester::start(Time now) {
  const SendWQE& wqe = window_.current();
  if (local_.has_passed(window_, wqe)) {
    window_.skip();
    complete_local();
    return Step::kNext;
  }
  if (!may_start(wqe)) return Step::kWait;
  if (local_.has_deferred() && local_.must_precede(wqe, in_flight())) {
    end_deferral(PollHabit::End::kPost, now);
    restart_refused();
    return local_.has_deferred() ? Step::kWait : Step::kNext;
  }
  if (is_local_operation(wqe.wr.op)) {
    execute_local(wqe);
    return Step::kNext;
  }
  return local_.has_peer() ? start_copies(wqe, now) : start_packets(wqe);
}

RCRequester::Step RCRequester::start_copies(const SendWQE& wqe, Time now) {
  const u64 end = completer_.stopped_at().value_or(window_.queue().end_index());
  const LocalCopies::Taken taken = local_.take(window_, end, in_flight(), now);
  if (taken == LocalCopies::Taken::kNothing) return start_packets(wqe);
  if (taken == LocalCopies::Taken::kBegun) return Step::kWait;
  complete_local();
  after_copies();
  if (taken == LocalCopies::Taken::kTurn) return Step::kWait;
  restart_refused();
  return Step::kNext;
}

RCRequester::Step RCRequester::start_packets(const SendWQE& wqe) {
  if (peer_.never_asks(wqe.wr.op)) {
    stop_at(window_.index(), WQEStatus::kLocalQPOperation);
    return Step::kWait;
  }
  window_.start(psns_of(wqe));
  if (wqe.wr.op != SendOp::kRDMARead) peer_.on_message();
  return Step::kPacket;
}

void RCRequester::execute_local(const SendWQE& wqe) {
  const WQEStatus status = execute_local_operation(wqe, qp_, memory_);
  if (status != WQEStatus::kSuccess) return stop_at(window_.index(), status);
  window_.skip();
  complete_local();
}

// --- deferred operations

void RCRequester::after_copies() {
  if (local_.has_copied()) completer_.note_answer();
  if (local_.is_refused() && !window_.is_acknowledged())
    resend_unacknowledged();  // so that the last packet asks for its ACK
}

// Precondition: local_.is_waiting().
void RCRequester::end_deferral(PollHabit::End end, Time now) {
  local_.end_deferral(window_, end, now);
  after_copies();
}

void RCRequester::follow_late_copy() {
  if (!local_.follow(window_)) return;
  complete_local();
  after_copies();
}

bool RCRequester::run_deferred(Time now) {
  if (!local_.is_waiting()) return false;
  end_deferral(PollHabit::End::kPoll, now);
  return true;
}

void RCRequester::restart_refused() {
  if (local_.is_refused() && window_.is_acknowledged()) local_.restart(window_);
}

// --- packets

bool RCRequester::poll_packet(Time now, Trains trains, TxPacket& out) {
  if (completer_.has_failed() || recovery_.is_paused() || local_.is_resting() ||
      !may_send_in(qp_.state))
    return false;
  restart_refused();
  if (recovery_.is_probe_due() && send_probe(out)) return true;
  // The probe's payload comes first: two gathers would disturb each other.
  if (recovery_.is_probe_due()) return false;
  const Allowance may = allowance(trains, now);
  while (!window_.is_at_end()) {
    if (window_.scoreboard() != nullptr && window_.skip_arrived()) continue;
    if (completer_.is_stopped(window_.index()) || window_.in_flight() >= may.in_flight)
      return false;
    Step next = step(now);
    if (next == Step::kPacket) next = send(may, now, out);
    if (next != Step::kNext) return next == Step::kPacket;
  }
  return false;
}

// No trains if each packet must be examined by itself, or if it is time to ask for an ACK.
RCRequester::Allowance RCRequester::allowance(Trains trains, Time now) {
  const bool may_build_trains = trains == Trains::kYes && window_.scoreboard() == nullptr &&
                                !flight_.wants_acks() && !ack_requests_.is_late(now);
  return {.in_flight = flight_.packets(mtu(), now),
          .trains = may_build_trains ? Trains::kYes : Trains::kNo};
}

// Returns the part of the WQE that the next packet takes: a piece of a READ, or a packet or a train
// of a message. A train is of new middle packets that ask for no ACK.
RequestBuilder::Part RCRequester::next_part(const SendWQE& wqe, const Allowance& may) const {
  const PSN psn = window_.cursor();
  if (wqe.wr.op == SendOp::kRDMARead) return {psn, window_.psns_to_request(wqe, psn)};
  const u32 packet = wqe.first_psn.distance_to(psn);
  if (may.trains == Trains::kNo || packet == 0 || window_.resends()) return {psn, 1};
  return {psn, std::min({kLongestTrain, wqe.packets - 1 - packet, ack_requests_.room(),
                         may.in_flight - 1 - window_.in_flight()})};
}

// Sends the next packet of the WQE at the cursor.
RCRequester::Step RCRequester::send(const Allowance& may, Time now, TxPacket& out) {
  const SendWQE& wqe = window_.current();
  const bool is_new_request = expects_response(wqe.wr.op) && !window_.resends();
  if (is_new_request && !peer_.may_ask(wqe.wr.op)) return wait(now);
  RequestBuilder::Part part = next_part(wqe, may);
  const MemoryFault fault = builder_.build(wqe, part, out);
  if (fault == MemoryFault::kLater) return wait(now);
  if (fault != MemoryFault::kNone) {
    stop_at(window_.index(), WQEStatus::kLocalProtection);
    return Step::kNext;
  }
  if (is_new_request) peer_.on_request(wqe.wr.op);
  out.urgency = urgency_of(wqe, out, part.psns);
  ask_for_ack(wqe, out.packets, may, now, out.headers.bth);
  note_sent(wqe, part.psns, out.headers.bth.ack_req, now);
  return Step::kPacket;
}

RCRequester::Step RCRequester::wait(Time now) {
  if (copies_ != nullptr && copies_->is_reading())
    recovery_.restart_timer(now);  // the silence is not the peer's
  return Step::kWait;
}

// Sends the oldest packet that is not acknowledged once more, wherever the cursor is. Returns false
// if its payload is not here yet, or is not accessible: then all are sent again from there on.
bool RCRequester::send_probe(TxPacket& out) {
  const SendWQE& wqe = window_.oldest();
  const PSN psn = window_.unacked();
  RequestBuilder::Part part{psn, window_.psns_to_request(wqe, psn)};
  const MemoryFault fault = builder_.build(wqe, part, out);
  if (fault == MemoryFault::kLater) return false;
  if (fault != MemoryFault::kNone) {
    stop_at(window_.done(), WQEStatus::kLocalProtection);
    return false;
  }
  recovery_.on_probe_sent(psn.advanced(part.psns), window_.cursor());
  flight_.on_resent(psn, part.psns);
  if (Scoreboard* const board = window_.scoreboard())
    board->on_resent(psn, part.psns, window_.frontier());
  ++counters_.roce_adp_retrans;
  ++counters_.retransmitted_packets;
  return true;
}

// A program that requests one completion of many waits for that one.
Urgency RCRequester::urgency_of(const SendWQE& wqe, const TxPacket& packet, u32 psns) {
  const bool awaited =
      (wqe.wr.signaled || qp_.signal_all) && window_.cursor().distance_to(wqe.last_psn) < psns;
  const u32 run = awaited ? std::exchange(unawaited_, 0) : unawaited_ += packet.packets;
  if (!window_.waits_for_response()) return Urgency::kFirst;
  return awaited && run >= kLongRun ? Urgency::kNow : Urgency::kWithMore;
}

// Sets BTH.A of the packets at the cursor. Responses to READs and atomics acknowledge by
// themselves.
void RCRequester::ask_for_ack(const SendWQE& wqe, u32 packets, const Allowance& may, Time now,
                              BTH& bth) {
  if (!window_.waits_for_response()) ack_requests_.restart_period(now);
  if (expects_response(wqe.wr.op)) return ack_requests_.restart_period(now);
  bth.ack_req = must_ask(wqe, may);
  ack_requests_.on_message(bth, packets, now);
}

// Returns true if the window or the queue would not move without this ACK: the application waits
// for it, or nothing follows; and always if ACKs report congestion.
bool RCRequester::must_ask(const SendWQE& wqe, const Allowance& may) {
  if (flight_.wants_acks() || (window_.scoreboard() != nullptr && window_.resends())) return true;
  if (window_.in_flight() + 1 >= may.in_flight) return true;
  return window_.cursor() == wqe.last_psn && (wqe.wr.signaled || qp_.signal_all || !more_follows());
}

// Returns true if packets follow at once that can ask for the ACK. A local operation has no packet,
// and one that would rather be copied waits for the ACK.
bool RCRequester::more_follows() {
  const u64 next = window_.index() + 1;
  if (next == window_.queue().end_index() || next == completer_.stopped_at()) return false;
  const SendWQE& wqe = window_.queue().at(next);
  if (is_local_operation(wqe.wr.op)) return false;
  return next < window_.fresh() ||
         (may_start(wqe) && peer_.has_credit(wqe.wr.op) && !local_.prefers_copy(window_, wqe));
}

void RCRequester::note_sent(const SendWQE& wqe, u32 psns, bool is_answered, Time now) {
  if (!window_.waits_for_response()) recovery_.restart_timer(now);
  if (window_.resends())
    note_resent(psns, now);
  else
    note_new(psns, is_answered, now);
  window_.advance(wqe, psns);
  note_waiting();
}

void RCRequester::note_new(u32 psns, bool is_answered, Time now) {
  const PSN psn = window_.cursor();
  if (is_answered) recovery_.on_sent(psn, now);
  if (Scoreboard* const board = window_.scoreboard()) board->on_sent(psn);
  flight_.on_sent(window_, psns, now);
}

void RCRequester::note_resent(u32 psns, Time now) {
  const PSN psn = window_.cursor();
  ++counters_.retransmitted_packets;
  flight_.on_resent(psn, psns);
  Scoreboard* const board = window_.scoreboard();
  if (board == nullptr) return;
  recovery_.on_repeated();
  board->on_resent(psn, psns, window_.frontier());
  flight_.on_selective_repeat(window_, psns, now);
}

}  // namespace verbena
