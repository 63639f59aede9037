// The effects of responses, time and errors on an RC requester. IBTA Vol 1, 9.7.5
// (responses), 9.7.6 (retries), 9.9.2 (requester errors).
#include <algorithm>
#include <array>
#include <cstring>

#include "memory/sg_walk.h"
#include "transport/rc/answer.h"
#include "transport/rc/requester.h"
#include "wire/ib/rnr_timer.h"

namespace verbena {

namespace {

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
  const PSN before = window_.unacked();
  if (takes_responses()) take_response(packet, now);
  note_waiting();
  flight_.on_response(window_, before, mtu(), path, now);
}

void RCRequester::on_acknowledgement(const Acknowledgement& acknowledgement, Time now) {
  const PSN before = window_.unacked();
  if (takes_responses()) take_acknowledgement(acknowledgement, now);
  note_waiting();
  flight_.on_response(window_, before, mtu(), nullptr, now);
}

void RCRequester::take_response(const PacketView& packet, Time now) {
  const BTH& bth = packet.headers.bth;
  if (bth.opcode.op == Op::kAcknowledge && bth.opcode != kSackOpcode)
    return take_acknowledgement({bth.psn, packet.headers.aeth}, now);
  if (!window_.is_expected(bth.psn)) return;  // a ghost, or a duplicate
  if (bth.opcode == kSackOpcode) return on_sack(packet, now);
  if (bth.opcode.op == Op::kAtomicAcknowledge) return on_atomic_acknowledge(packet, now);
  on_read_response(packet, now);
}

void RCRequester::take_acknowledgement(const Acknowledgement& acknowledgement, Time now) {
  if (acknowledges_in_order(acknowledgement, now)) return;
  const auto& [psn, aeth] = acknowledgement;
  if (window_.is_expected(psn)) return on_acknowledge(psn, aeth, now);
  // A ghost, a duplicate, or (for the PSN just before) an unsolicited credit update. 9.7.7.2.2
  if (psn.next() == window_.unacked()) peer_.note_credits(aeth);
}

void RCRequester::on_acknowledge(PSN psn, const AETH& aeth, Time now) {
  const bool is_ack = aeth.kind == AETHKind::kACK;
  Scoreboard* const board = window_.scoreboard();
  if (board != nullptr && !is_ack) board->on_missing(psn);
  if (!acknowledge_before(is_ack ? psn.next() : psn, now)) return implied_nak(now);
  if (completer_.has_failed()) return;
  if (board != nullptr && !is_ack && window_.unacked() != psn) return;  // it arrived late
  switch (aeth.kind) {
    case AETHKind::kACK: return peer_.note_credits(aeth);
    case AETHKind::kRNRNAK: return on_rnr_nak(aeth, now);
    case AETHKind::kNAK: return on_nak(aeth, now);
    case AETHKind::kReserved: return;
  }
}

void RCRequester::on_nak(const AETH& aeth, Time now) {
  const auto code = static_cast<NAKCode>(aeth.value);
  switch (code) {
    case NAKCode::kPSNSequenceError:
      ++counters_.packet_seq_err;
      return go_back(Loss::kSequenceError, now);
    case NAKCode::kInvalidRequest: ++counters_.req_remote_invalid_request; break;
    case NAKCode::kRemoteAccessError: ++counters_.req_remote_access_errors; break;
    case NAKCode::kRemoteOperationalError: ++counters_.req_remote_operational_errors; break;
    case NAKCode::kInvalidRDRequest: break;
  }
  fail(status_of(code));
}

void RCRequester::on_rnr_nak(const AETH& aeth, Time now) {
  if (recovery_.is_paused()) return;
  ++counters_.rnr_nak_retry_err;
  if (!recovery_.take_rnr_retry()) return fail(WQEStatus::kRNRRetryExceeded);
  recovery_.pause(now + rnr_timer(aeth.value));
  resend_unacknowledged();
}

// Acknowledges all PSNs before `end`. Returns false if a READ or atomic without its response is
// among them.
bool RCRequester::acknowledge_before(PSN end, Time now) {
  if (window_.scoreboard() != nullptr) return acknowledge_executed(end, now);
  const PSN before = window_.unacked();
  u32 left = before.distance_to(end);
  while (left != 0 && !completer_.has_failed()) {
    const SendWQE& wqe = window_.oldest();
    if (expects_response(wqe.wr.op)) return false;
    if (window_.unacked() == before) note_news(now);
    const u32 here = std::min(left, window_.left_of(wqe, window_.unacked()));
    retire(wqe, here, now);
    left -= here;
  }
  return true;
}

// Returns the READ or atomic that `psn` answers, if it is the next expected response (with a
// scoreboard, any expected one). Returns nullptr if it was handled: a gap, or an error.
SendWQE* RCRequester::expected_response(PSN psn, Time now) {
  if (window_.scoreboard() != nullptr) return unanswered(psn);
  if (!acknowledge_before(psn, now)) {
    implied_nak(now);
    return nullptr;
  }
  if (completer_.has_failed()) return nullptr;
  SendWQE& wqe = window_.oldest();
  if (expects_response(wqe.wr.op)) return &wqe;
  fail(WQEStatus::kBadResponse);  // no request asked for a response. 9.9.2.1
  return nullptr;
}

// Stores what a READ or an atomic has returned. Returns false if it did not: the response counts as
// lost, or the QP has failed.
bool RCRequester::store(const SendWQE& wqe, u64 offset, Bytes data) {
  const MemoryFault fault = scatter(memory_, qp_.pd, wqe.wr.sg_list, offset, data, copies_);
  if (fault != MemoryFault::kNone && fault != MemoryFault::kLater)
    fail(WQEStatus::kLocalProtection);
  return fault == MemoryFault::kNone;
}

// IBTA 9.7.5.1.3. The place of the data follows from the PSN, not from First/Middle/Last: either
// may answer a repeated READ.
void RCRequester::on_read_response(const PacketView& packet, Time now) {
  const PSN psn = packet.headers.bth.psn;
  const SendWQE* wqe = expected_response(psn, now);
  if (wqe == nullptr) return;
  if (answer_to(wqe->wr.op) == Answer::kConfirmation) return on_confirmation(*wqe, packet, now);
  if (wqe->wr.op != SendOp::kRDMARead) return fail(WQEStatus::kBadResponse);
  const u64 offset = u64{wqe->first_psn.distance_to(psn)} * mtu();
  const u64 expected = std::min<u64>(mtu(), wqe->length_bytes - offset);
  if (packet.payload.size() != expected) return fail(WQEStatus::kBadResponse);
  if (!store(*wqe, offset, packet.payload)) return;
  if (traits_of(packet.headers.bth.opcode).aeth) peer_.note_credits(packet.headers.aeth);
  acknowledge_response(*wqe, psn, now);
}

void RCRequester::on_confirmation(const SendWQE& wqe, const PacketView& packet, Time now) {
  if (packet.headers.bth.opcode.op != Op::kRDMAReadResponseOnly || !packet.payload.empty())
    return fail(WQEStatus::kBadResponse);
  peer_.note_credits(packet.headers.aeth);
  acknowledge_response(wqe, packet.headers.bth.psn, now);
}

void RCRequester::on_atomic_acknowledge(const PacketView& packet, Time now) {
  const SendWQE* wqe = expected_response(packet.headers.bth.psn, now);
  if (wqe == nullptr) return;
  if (answer_to(wqe->wr.op) != Answer::kOriginal) return fail(WQEStatus::kBadResponse);
  std::array<u8, 8> original;  // in the byte order of this host, as the operands were
  std::memcpy(original.data(), &packet.headers.atomic_ack.original_data, original.size());
  if (!store(*wqe, 0, original)) return;
  peer_.note_credits(packet.headers.aeth);
  acknowledge_response(*wqe, packet.headers.bth.psn, now);
}

void RCRequester::acknowledge_response(const SendWQE& wqe, PSN psn, Time now) {
  window_.scoreboard() != nullptr ? take_answer(wqe, psn, now) : acknowledge_answered(wqe, now);
}

// The oldest PSN is a response that has arrived. The last one of a piece frees its resource at the
// responder.
void RCRequester::acknowledge_answered(const SendWQE& oldest, Time now) {
  if (window_.psns_of_piece(oldest, window_.unacked()) == 1) peer_.on_answered();
  note_news(now);
  retire(oldest, 1, now);
}

void RCRequester::note_news(Time now) {
  completer_.note_answer();
  recovery_.on_news(now);
}

// The oldest `psns`, all of the oldest WQE, are done.
void RCRequester::retire(const SendWQE& oldest, u32 psns, Time now) {
  const SendWindow::Acknowledged done = window_.acknowledge(oldest, psns);
  if (done.passes_cursor) note_moved_back();
  recovery_.on_acknowledged(window_.unacked(), now);
  flight_.on_acknowledged(psns);
  if (done.ends_wqe) complete_local();
}

// Completes operations without packets when all WQEs before them are complete. A WQE that our own
// side stopped fails then.
void RCRequester::complete_local() {
  window_.complete_local();
  if (completer_.stopped_at() == window_.done()) fail(completer_.stopped_status());
}

void RCRequester::stop_at(u64 index, WQEStatus status) {
  completer_.stop_at(index, status);
  resend_unacknowledged();  // so that the last packet before it asks for its ACK
  complete_local();
}

// Ends the QP with `status` of the oldest WQE that is not done. Deferred operations precede it.
void RCRequester::fail(WQEStatus status) {
  if (completer_.has_failed()) return;
  if (local_.is_waiting()) {
    local_.copy_all(window_);
    after_copies();
  }
  recovery_.end_pause();
  completer_.fail(window_, status);
}

void RCRequester::on_copy_failed() {
  local_.forget_late();
  if (completer_.has_failed()) return;
  if (window_.done() < window_.queue().end_index()) return fail(WQEStatus::kLocalProtection);
  completer_.fail_later();
}

// --- recovery

void RCRequester::implied_nak(Time now) {
  if (window_.scoreboard() != nullptr) return look_again(now);
  if (!window_.waits_for_response() || !recovery_.is_new_gap(window_.unacked())) return;
  ++counters_.implied_nak_seq_err;
  go_back(Loss::kImpliedNAK, now);
}

// Go-back-N from the oldest unacknowledged PSN. IBTA 9.7.5.1.4, 9.7.6.1
void RCRequester::go_back(Loss why, Time now) {
  const bool is_timeout = why == Loss::kTimeout;
  if (!window_.waits_for_response() && !is_timeout) return;  // already going back
  if (!recovery_.take_retry()) return fail(WQEStatus::kRetryExceeded);
  is_timeout ? flight_.on_timeout(now) : flight_.on_nak(now);
  if (is_timeout) recovery_.forget_gap();
  resend_unacknowledged();
  recovery_.restart_timer(now);
}

// Repeats all packets that are not known to have arrived.
void RCRequester::resend_unacknowledged() {
  if (Scoreboard* const board = window_.scoreboard()) board->force(window_.frontier());
  window_.move_back();
  note_moved_back();
}

void RCRequester::note_moved_back() {
  ack_requests_.restart();
  recovery_.on_moved_back();
}

Time RCRequester::next_timer() const {
  if (!takes_responses()) return Time::never();
  return local_.is_waiting() ? std::min(local_.deferred_until(), next_wait()) : next_wait();
}

Time RCRequester::next_wait() const {
  if (recovery_.is_paused()) return recovery_.pause_until();
  if (local_.is_resting()) return local_.rests_from();
  return window_.waits_for_response() ? recovery_.next_timeout() : Time::never();
}

void RCRequester::on_timer(Time now) {
  if (local_.is_copying()) follow_late_copy();
  if (now < next_timer()) return;
  if (local_.is_waiting() && now >= local_.deferred_until())
    return end_deferral(PollHabit::End::kAlarm, now);
  if (recovery_.is_paused()) return recovery_.end_pause();
  if (local_.is_resting()) return local_.end_rest();
  if (now < recovery_.ack_timeout_at()) return break_silence();
  ++counters_.local_ack_timeout_err;
  go_back(Loss::kTimeout, now);
}

void RCRequester::break_silence() {
  flight_.on_loss();
  if (!recovery_.take_probe()) resend_unacknowledged();
}

}  // namespace verbena
