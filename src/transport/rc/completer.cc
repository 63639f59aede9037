// The completer of an RC requester: the effects of responses, time and errors on its WQEs. IBTA Vol
// 1, 9.7.5 (responses), 9.7.6 (retries), 9.9.2 (requester errors), 10.8.3 (completions).
#include "base/check.h"
#include "memory/sg_walk.h"
#include "transport/completions.h"
#include "transport/rc/answer.h"
#include "transport/rc/requester.h"
#include "wire/ib/ack_timeout.h"
#include "wire/ib/credits.h"
#include "wire/ib/rnr_timer.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace verbena {

namespace {

constexpr u8 kRetryForEver = 7;  // of rnr_retry. IBTA 11.2.5.2

WQEStatus status_of(NAKCode code) {
  switch (code) {
    case NAKCode::kInvalidRequest: return WQEStatus::kRemoteInvalidRequest;
    case NAKCode::kRemoteAccessError: return WQEStatus::kRemoteAccess;
    case NAKCode::kRemoteOperationalError: return WQEStatus::kRemoteOperational;
    case NAKCode::kPSNSequenceError:
    case NAKCode::kInvalidRDRequest: break;
  }
  return WQEStatus::kBadResponse;  // a code that this service does not define
}

}  // namespace

void RCRequester::on_response(const PacketView& packet, const PathTelemetry* path, Time now) {
  const PSN before = unacked_;
  take_response(packet, now);
  note_share();
  tell_of_acks(before, path, now);
}

void RCRequester::on_acknowledgement(const Acknowledgement& acknowledgement, Time now) {
  const PSN before = unacked_;
  if (takes_responses()) take_acknowledgement(acknowledgement, now);
  note_share();
  tell_of_acks(before, nullptr, now);
}

void RCRequester::tell_of_acks(PSN before, const PathTelemetry* path, Time now) {
  if (ack_signals_ && unacked_ != before)
    ack_signals_->on_acknowledged(
        {.before = before, .unacked = unacked_, .in_flight = in_flight(), .mtu = mtu()}, path, now);
}

void RCRequester::take_response(const PacketView& packet, Time now) {
  if (!takes_responses()) return;
  const BTH& bth = packet.headers.bth;
  if (bth.opcode.op == Op::kAcknowledge && bth.opcode != kSackOpcode)
    return take_acknowledgement({bth.psn, packet.headers.aeth}, now);
  if (!is_expected(bth.psn)) return;  // a ghost, or a duplicate
  if (bth.opcode == kSackOpcode) return on_sack(packet, now);
  if (bth.opcode.op == Op::kAtomicAcknowledge) return on_atomic_acknowledge(packet, now);
  on_read_response(packet, now);
}

void RCRequester::take_acknowledgement(const Acknowledgement& acknowledgement, Time now) {
  if (acknowledges_in_order(acknowledgement, now)) return;
  const auto& [psn, aeth] = acknowledgement;
  if (is_expected(psn)) return on_acknowledge(psn, aeth, now);
  // A ghost, a duplicate, or (for the PSN just before) an unsolicited credit update. 9.7.7.2.2
  if (psn.next() == unacked_ && aeth.kind == AETHKind::kACK) note_credits(aeth);
}

void RCRequester::on_acknowledge(PSN psn, const AETH& aeth, Time now) {
  const PSN end = aeth.kind == AETHKind::kACK ? psn.next() : psn;
  if (scoreboard_ && aeth.kind != AETHKind::kACK) scoreboard_->on_missing(psn);
  if (!acknowledge_before(end, now)) return implied_nak(now);
  if (failed_) return;
  if (scoreboard_ && aeth.kind != AETHKind::kACK && unacked_ != psn) return;  // it arrived late
  switch (aeth.kind) {
    case AETHKind::kACK: return note_credits(aeth);
    case AETHKind::kRNRNAK: return on_rnr_nak(aeth, now);
    case AETHKind::kNAK: return on_nak(aeth, now);
    case AETHKind::kReserved: return;
  }
}

// Notes the peer's limit sequence number. IBTA 9.7.7.2.4
void RCRequester::note_credits(const AETH& aeth) {
  if (aeth.kind != AETHKind::kACK) return;
  if (aeth.value == kNoCredits)
    credit_limit_.reset();
  else
    credit_limit_ = aeth.msn.advanced(credits_from_code(aeth.value));
}

void RCRequester::on_nak(const AETH& aeth, Time now) {
  const auto code = static_cast<NAKCode>(aeth.value);
  switch (code) {
    case NAKCode::kPSNSequenceError:
      ++counters_.packet_seq_err;
      return go_back(Recovery::kSequenceError, now);
    case NAKCode::kInvalidRequest: ++counters_.req_remote_invalid_request; break;
    case NAKCode::kRemoteAccessError: ++counters_.req_remote_access_errors; break;
    case NAKCode::kRemoteOperationalError: ++counters_.req_remote_operational_errors; break;
    case NAKCode::kInvalidRDRequest: break;
  }
  fail(status_of(code));
}

void RCRequester::on_rnr_nak(const AETH& aeth, Time now) {
  if (rnr_until_) return;
  ++counters_.rnr_nak_retry_err;
  if (qp_.rnr_retry_count != kRetryForEver) {
    if (rnr_retries_left_ == 0) return fail(WQEStatus::kRNRRetryExceeded);
    --rnr_retries_left_;
  }
  retries_left_ = qp_.retry_count;  // retries count silence, and the peer has answered
  rnr_until_ = now + rnr_timer(aeth.value);
  resend_unacknowledged();
}

// Acknowledges all PSNs before `end`. Returns false if a READ or atomic without its response is
// among them.
bool RCRequester::acknowledge_before(PSN end, Time now) {
  if (scoreboard_) return acknowledge_executed(end, now);
  const PSN before = unacked_;
  u32 left = unacked_.distance_to(end);
  while (left != 0 && !failed_) {
    const SendWQE& wqe = queue_.at(done_);
    if (expects_response(wqe.wr.op)) return false;
    if (unacked_ == before) note_news(now);
    const u32 here = std::min(left, unacked_.distance_to(wqe.last_psn) + 1);
    retire(wqe, here, now);
    left -= here;
  }
  return true;
}

// Returns the READ or atomic that `psn` answers, if it is the next expected response (with a
// scoreboard, any expected one). Returns nullptr if it was handled: a gap, or an error.
SendWQE* RCRequester::expected_response(PSN psn, Time now) {
  if (scoreboard_) return unanswered(psn);
  if (!acknowledge_before(psn, now)) {
    implied_nak(now);
    return nullptr;
  }
  if (failed_) return nullptr;
  SendWQE& wqe = queue_.at(done_);
  if (expects_response(wqe.wr.op)) return &wqe;
  fail(WQEStatus::kBadResponse);  // no request asked for a response. 9.9.2.1
  return nullptr;
}

// IBTA 9.7.5.1.3. The place of the data follows from the PSN, not from First/Middle/Last: either
// may answer a repeated READ.
void RCRequester::on_read_response(const PacketView& packet, Time now) {
  SendWQE* wqe = expected_response(packet.headers.bth.psn, now);
  if (wqe == nullptr) return;
  if (answer_to(wqe->wr.op) == Answer::kConfirmation) return on_confirmation(*wqe, packet, now);
  if (wqe->wr.op != SendOp::kRDMARead) return fail(WQEStatus::kBadResponse);
  const PSN psn = packet.headers.bth.psn;
  const u64 offset = u64{wqe->first_psn.distance_to(psn)} * mtu();
  const u64 expected = std::min<u64>(mtu(), wqe->length_bytes - offset);
  if (packet.payload.size() != expected) return fail(WQEStatus::kBadResponse);
  const MemoryFault fault =
      scatter(memory_, qp_.pd, wqe->wr.sg_list, offset, packet.payload, copies_);
  if (fault == MemoryFault::kLater) return;  // counts as lost
  if (fault != MemoryFault::kNone) return fail(WQEStatus::kLocalProtection);
  if (traits_of(packet.headers.bth.opcode).aeth) note_credits(packet.headers.aeth);
  acknowledge_response(*wqe, psn, now);
}

void RCRequester::on_confirmation(const SendWQE& wqe, const PacketView& packet, Time now) {
  if (packet.headers.bth.opcode.op != Op::kRDMAReadResponseOnly || !packet.payload.empty())
    return fail(WQEStatus::kBadResponse);
  note_credits(packet.headers.aeth);
  acknowledge_response(wqe, packet.headers.bth.psn, now);
}

void RCRequester::on_atomic_acknowledge(const PacketView& packet, Time now) {
  SendWQE* wqe = expected_response(packet.headers.bth.psn, now);
  if (wqe == nullptr) return;
  if (answer_to(wqe->wr.op) != Answer::kOriginal) return fail(WQEStatus::kBadResponse);
  std::array<u8, 8> original;  // in the byte order of this host, as the operands were
  std::memcpy(original.data(), &packet.headers.atomic_ack.original_data, original.size());
  const MemoryFault fault = scatter(memory_, qp_.pd, wqe->wr.sg_list, 0, original, copies_);
  if (fault == MemoryFault::kLater) return;  // counts as lost
  if (fault != MemoryFault::kNone) return fail(WQEStatus::kLocalProtection);
  note_credits(packet.headers.aeth);
  acknowledge_response(*wqe, packet.headers.bth.psn, now);
}

void RCRequester::acknowledge_response(const SendWQE& wqe, PSN psn, Time now) {
  scoreboard_ ? take_answer(wqe, psn, now) : free_answered(wqe, now);
}

// The next response packet has arrived; the last one of a piece frees its resource at the
// responder.
void RCRequester::free_answered(const SendWQE& wqe, Time now) {
  const u32 packet = wqe.first_psn.distance_to(unacked_) + 1;
  if (packet % chunk_packets_ == 0 || packet == wqe.packets) {
    CHECK(rd_atomic_ != 0);
    --rd_atomic_;
  }
  progress(1, now);
}

// Acknowledges `psns` more, all inside the WQE `done_`.
void RCRequester::progress(u32 psns, Time now) {
  note_news(now);
  retire(queue_.at(done_), psns, now);
}

// The peer acknowledges something new.
void RCRequester::note_news(Time now) {
  answered_ = true;
  retries_left_ = qp_.retry_count;
  rnr_retries_left_ = qp_.rnr_retry_count;
  rnr_until_.reset();
  implied_nak_at_.reset();
  timer_base_ = now;
  probe_due_ = false;
}

// Precondition: `wqe` is the one at `done_`.
void RCRequester::retire(const SendWQE& wqe, u32 psns, Time now) {
  const bool finished = unacked_.distance_to(wqe.last_psn) + 1 == psns;
  const bool overtakes = in_flight() < psns;  // acknowledged while it was to be repeated
  if (scoreboard_) scoreboard_->on_acknowledged(unacked_, psns);
  unacked_ = unacked_.advanced(psns);
  if (finished) ++done_;
  if (overtakes) move_back();
  probe_timer_.on_acknowledged(unacked_, now);
  if (probe_) note_probe_answer();
  window_.on_acknowledged(psns);
  if (finished) skip_local_operations();
}

// Completes local operations when all WQEs before them are complete. A WQE that our own side
// stopped fails then.
void RCRequester::skip_local_operations() {
  while (done_ < fresh_ && queue_.at(done_).packets == 0) ++done_;
  if (cursor_index_ < done_) cursor_index_ = done_;
  if (stopped_at_ && done_ == *stopped_at_) fail(stopped_status_);
}

void RCRequester::stop_at(u64 index, WQEStatus status) {
  stopped_at_ = index;
  stopped_status_ = status;
  resend_unacknowledged();  // so that the last packet before it asks for its ACK
  skip_local_operations();
}

// --- recovery

void RCRequester::implied_nak(Time now) {
  if (scoreboard_) return look_again(now);
  if (implied_nak_at_ == unacked_ || !waits_for_response()) return;
  implied_nak_at_ = unacked_;
  ++counters_.implied_nak_seq_err;
  go_back(Recovery::kImpliedNAK, now);
}

// Go-back-N from the oldest unacknowledged PSN. IBTA 9.7.5.1.4, 9.7.6.1
void RCRequester::go_back(Recovery why, Time now) {
  if (!waits_for_response() && why != Recovery::kTimeout) return;  // already going back
  if (retries_left_ == 0) return fail(WQEStatus::kRetryExceeded);
  --retries_left_;
  if (ack_signals_)
    why == Recovery::kTimeout ? ack_signals_->on_timeout(now) : ack_signals_->on_nak(now);
  if (why == Recovery::kTimeout) implied_nak_at_.reset();
  note_loss();
  resend_unacknowledged();
  timer_base_ = now;
}

void RCRequester::note_loss() {
  if (limits_.path.loss_response == LossResponse::kHalveWindow) window_.on_loss();
}

// An ACK of the probe alone means that the peer has no more, if the ACK is the probe's.
void RCRequester::note_probe_answer() {
  if (unacked_.before(probe_->end)) return;
  if (unacked_ == probe_->end && unacked_.before(probe_->in_flight_end))
    probe_timer_.on_probe_answered();
  probe_.reset();
}

// Repeats all packets that are not known to have arrived.
void RCRequester::resend_unacknowledged() {
  if (scoreboard_) scoreboard_->force(frontier_);
  move_back();
}

void RCRequester::move_back() {
  cursor_ = unacked_;
  cursor_index_ = done_;
  since_ack_request_ = 0;
  probe_.reset();
  probe_due_ = false;
  probe_timer_.on_resent();
}

Time RCRequester::ack_timeout_at() const {
  const std::optional<Duration> timeout = ack_timeout(qp_.ack_timeout);
  return timeout ? timer_base_ + std::max(*timeout, limits_.path.min_ack_timeout) : Time::never();
}

Time RCRequester::next_timer() const {
  if (failed_ || (qp_.state != QPState::kRTS && qp_.state != QPState::kSQD)) return Time::never();
  return deferred_ && !deferred_->refused ? std::min(deferred_->until, next_wait()) : next_wait();
}

Time RCRequester::next_wait() const {
  if (rnr_until_) return *rnr_until_;
  if (rests_from_) return *rests_from_;
  if (!waits_for_response()) return Time::never();
  return std::min(ack_timeout_at(), probe_timer_.next(timer_base_));
}

void RCRequester::on_timer(Time now) {
  if (late_.has_begun()) follow_late_copy();
  if (now < next_timer()) return;
  if (deferred_ && !deferred_->refused && now >= deferred_->until)
    return end_deferral(PollHabit::End::kAlarm, now);
  if (rnr_until_) {
    rnr_until_.reset();
    return;
  }
  if (rests_from_) {
    rests_from_.reset();
    return;
  }
  if (now < ack_timeout_at()) return break_silence();
  ++counters_.local_ack_timeout_err;
  go_back(Recovery::kTimeout, now);
}

void RCRequester::break_silence() {
  note_loss();  // a packet is lost, or the path has become slow
  if (probe_timer_.peer_is_awake()) return resend_unacknowledged();
  probe_timer_.on_probe();
  probe_due_ = true;
}

// --- completions

// Ends the QP with `status` of the WQE `done_`. IBTA 10.8.3.2
void RCRequester::fail(WQEStatus status) {
  if (failed_) return;
  while (deferred_ && !deferred_->refused) copy_deferred(deferred_->until);  // they precede it
  CHECK(done_ < queue_.end_index());
  failed_ = done_;
  failed_status_ = status;
  note_fault(queue_.at(done_), status);
  fatal_pending_ = true;
  rnr_until_.reset();
  ++counters_.req_cqe_error;
}

void RCRequester::on_copy_failed() {
  late_.forget();
  if (failed_) return;
  if (done_ < queue_.end_index()) return fail(WQEStatus::kLocalProtection);
  fatal_pending_ = true;  // its WQE is complete, and none is left to say so
}

void RCRequester::note_fault(const SendWQE& wqe, WQEStatus status) {
  if (fault_.status != WQEStatus::kSuccess) return;
  fault_ = requester_fault(status, wqe.wr, wqe.length_bytes, wqe.posted);
  fault_.answered = answered_;
  fault_.started = done_ < fresh_;
  if (status == WQEStatus::kLocalProtection)
    fault_.refused =
        find_refused(memory_, qp_.pd, wqe.wr.sg_list,
                     returns_data(wqe.wr.op) ? Access::kLocalWrite : Access::kLocalRead);
}

bool RCRequester::poll_cqe(CQE& out) {
  while (!queue_.empty()) {
    const u64 index = queue_.begin_index();
    WQEStatus status = WQEStatus::kSuccess;
    if (index >= done_ || (deferred_ && index >= deferred_->first)) {
      if (failed_ == index)
        status = failed_status_;
      else if (qp_.state == QPState::kError)
        status = WQEStatus::kFlushed;
      else
        return false;
    }
    const SendWQE& wqe = queue_.front();
    count_completion(wqe, qp_, status);
    // Work that was posted to a QP already in Error is a mistake; earlier work is not.
    if (status == WQEStatus::kFlushed && wqe.posted > entered_error_) note_fault(wqe, status);
    const bool visible = completes_visibly(wqe, qp_, status);
    if (visible) out = send_cqe(wqe, qp_, status);
    queue_.pop_front();
    if (!visible) continue;
    out.entries = queue_.take_unreported();
    return true;
  }
  return false;
}

std::optional<EngineEvent> RCRequester::poll_event() {
  if (fatal_pending_) {
    fatal_pending_ = false;
    return EngineEvent::kFatal;
  }
  if (qp_.state == QPState::kSQD && !drain_reported_ && done_ == fresh_ && !deferred_ &&
      !late_.has_begun()) {
    drain_reported_ = true;
    return EngineEvent::kSQDrained;
  }
  return std::nullopt;
}

}  // namespace verbena
