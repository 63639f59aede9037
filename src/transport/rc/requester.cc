#include "transport/rc/requester.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "memory/sg_walk.h"
#include "transport/completions.h"
#include "transport/local_operations.h"
#include "transport/message_ops.h"
#include "transport/rc/answer.h"

namespace verbena {

namespace {

constexpr u32 kLongRun = 16;  // requests in a row without a requested completion

bool is_atomic(SendOp op) { return answer_to(op) == Answer::kOriginal; }

// Returns true for operations that consume a receive WQE of the peer. IBTA 9.7.7.2.5
bool needs_receive(SendOp op) {
  switch (op) {
    case SendOp::kSend:
    case SendOp::kSendWithImmediate:
    case SendOp::kSendWithInvalidate:
    case SendOp::kRDMAWriteWithImmediate: return true;
    case SendOp::kRDMAWrite:
    case SendOp::kRDMARead:
    case SendOp::kCompareSwap:
    case SendOp::kFetchAdd:
    case SendOp::kFlush:
    case SendOp::kAtomicWrite:
    case SendOp::kBindMW:
    case SendOp::kLocalInvalidate: return false;
  }
  CHECK_UNREACHABLE();
}

bool may_send_in(QPState state) { return state == QPState::kRTS || state == QPState::kSQD; }

std::unique_ptr<Scoreboard> scoreboard_of(const RCLimits& limits) {
  if (limits.retransmission == Retransmission::kGoBackN) return nullptr;
  return std::make_unique<Scoreboard>(limits.most_psns(limits.path.window_packets),
                                      limits.reordering_packets);
}

Duration ack_request_period(const PathAllowances& path) {
  return path.min_probe_timeout ? *path.min_probe_timeout / 2 : path.ack_request_period;
}

}  // namespace

RCRequester::RCRequester(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters,
                         RequesterFault& fault)
    : qp_(parts.attributes),
      memory_(parts.memory),
      limits_(limits),
      counters_(counters),
      fault_(fault),
      copies_(parts.send_copies),
      queue_(parts.send_limits),
      ack_request_period_(ack_request_period(limits.path)),
      window_(limits.path.window_packets),
      share_(parts.window),
      scoreboard_(scoreboard_of(limits)),
      probe_timer_(limits.path.min_probe_timeout),
      peers_(parts.peers),
      habit_(parts.habit) {
  if (parts.congestion != nullptr)
    ack_signals_.emplace(*parts.congestion,
                         std::max(limits.path.window_packets, RCLimits::kMinWindow));
}

PostError RCRequester::post(const SendWR& wr, Time now) {
  if (!may_send_in(qp_.state) && qp_.state != QPState::kError && qp_.state != QPState::kSQE)
    return PostError::kBadState;
  if (returns_data(wr.op) && wr.inline_data) return PostError::kBadOpcode;
  if (wr.op == SendOp::kFlush && !wr.sg_list.empty()) return PostError::kTooManySGEs;
  if (is_atomic(wr.op) || wr.op == SendOp::kAtomicWrite) {
    u64 room = 0;
    for (const SGE& sge : wr.sg_list) room += sge.length;
    if (room != kAtomicBytes) return PostError::kUnaligned;
  }
  return queue_.push(wr, now);
}

void RCRequester::reset() {
  queue_.clear();
  done_ = fresh_ = cursor_index_ = queue_.begin_index();
  next_ssn_ = MSN(1);
  rd_atomic_ = since_ack_request_ = unawaited_ = 0;
  credit_limit_.reset();
  implied_nak_at_.reset();
  rnr_until_.reset();
  probe_.reset();
  probe_due_ = false;
  peer_.reset();
  no_short_cut_before_ = 0;
  refusals_ = passed_by_ = 0;
  short_cut_bytes_ = 0;
  late_.forget();
  rests_from_.reset();
  deferred_.reset();
  passed_until_ = 0;
  stopped_at_.reset();
  failed_.reset();
  fatal_pending_ = drain_reported_ = answered_ = false;
  fault_ = {};
}

void RCRequester::on_state(QPState from, Time now) {
  enter(from, now);
  note_share();
}

void RCRequester::enter(QPState from, Time now) {
  switch (qp_.state) {
    case QPState::kReset: reset(); return;
    case QPState::kRTS:
      if (from != QPState::kRTR) return;
      unacked_ = cursor_ = frontier_ = qp_.sq_psn;
      window_ = LossWindow(limits_.window(mtu()));
      if (scoreboard_) scoreboard_->reset(unacked_);
      losses_until_ = unacked_;
      losses_ = 0;
      chunk_packets_ = RCLimits::chunk(window_.packets());
      retries_left_ = qp_.retry_count;
      rnr_retries_left_ = qp_.rnr_retry_count;
      timer_base_ = now;
      probe_timer_ = ProbeTimer(limits_.path.min_probe_timeout);
      if (peers_ != nullptr && qp_.type == QPType::kRC) peer_ = peers_->find(qp_);
      return;
    case QPState::kSQD:
      drain_reported_ = false;
      resend_unacknowledged();  // the last packet may not have asked for an ACK
      return;
    case QPState::kError:
      entered_error_ = now;
      rnr_until_.reset();
      rests_from_.reset();
      late_.forget();
      if (deferred_)
        done_ = std::min(done_, deferred_->first);  // flushed, with those that passed it
      deferred_.reset();
      return;
    case QPState::kSQE: rnr_until_.reset(); return;
    case QPState::kInit:
    case QPState::kRTR: return;
  }
}

// --- what may start

bool RCRequester::has_credit(const SendWQE& wqe) const {
  return !credit_limit_ || !needs_receive(wqe.wr.op) || next_ssn_.before_or_equal(*credit_limit_);
}

bool RCRequester::may_start(const SendWQE& wqe) const {
  if (qp_.state == QPState::kSQD || (deferred_ && deferred_->refused)) return false;
  if (wqe.wr.fence && rd_atomic_ != 0) return false;
  if (expects_response(wqe.wr.op) && rd_atomic_ >= qp_.max_rd_atomic && qp_.max_rd_atomic != 0)
    return false;
  if (waits_for_response() && prefers_short_cut(wqe) && !lets_short_cut_pass()) return false;
  // Without a credit, one message at a time may still leave, to learn of new credits. IBTA
  // 9.7.7.2.5
  return has_credit(wqe) || !waits_for_response();
}

void RCRequester::assign_psns(SendWQE& wqe) {
  const bool is_single = expects_response(wqe.wr.op) && wqe.wr.op != SendOp::kRDMARead;
  const u32 length = is_single ? 1 : wqe.length_bytes;
  wqe.packets = length <= mtu() ? 1 : (length - 1) / mtu() + 1;
  wqe.first_psn = frontier_;
  wqe.last_psn = frontier_.advanced(wqe.packets - 1);
  if (wqe.wr.op != SendOp::kRDMARead) next_ssn_ = next_ssn_.next();
}

void RCRequester::start_local(SendWQE& wqe) {
  wqe.packets = 0;
  const WQEStatus status = execute_local_operation(wqe, qp_, memory_);
  if (status != WQEStatus::kSuccess) return stop_at(cursor_index_, status);
  ++fresh_;
  ++cursor_index_;
  skip_local_operations();
}

// Returns false if an error of our own side stopped the WQE.
bool RCRequester::start(SendWQE& wqe) {
  if (expects_response(wqe.wr.op) && qp_.max_rd_atomic == 0) {
    stop_at(cursor_index_, WQEStatus::kLocalQPOperation);
    return false;
  }
  assign_psns(wqe);
  ++fresh_;
  return true;
}

// --- packets

bool RCRequester::poll_packet(Time now, Trains trains, TxPacket& out) {
  if (failed_ || rnr_until_ || rests_from_ || !may_send_in(qp_.state)) return false;
  restart_refused();
  if (probe_due_ && build_probe(out)) return true;
  if (probe_due_) return false;  // its payload comes first: two gathers would disturb each other
  may_be_in_flight_ = window_packets(now);
  trains_ = may_build_trains(trains, now);
  while (cursor_index_ != queue_.end_index()) {
    if (scoreboard_ && skip_arrived()) continue;
    if (stopped_at_ && cursor_index_ >= *stopped_at_) return false;
    if (in_flight() >= may_be_in_flight_) return false;
    SendWQE& wqe = queue_.at(cursor_index_);
    if (cursor_index_ == fresh_) {
      if (has_passed(wqe)) {
        skip_fresh();
        skip_local_operations();
        continue;
      }
      if (late_.has_begun() || !may_start(wqe)) return false;
      if (deferred_ && !may_follow_deferred(wqe)) {
        end_deferral(PollHabit::End::kPost, now);
        restart_refused();
        if (deferred_) return false;
        continue;
      }
      if (is_local_operation(wqe.wr.op)) {
        start_local(wqe);
        continue;
      }
      if (take_short_cut(now)) {
        if (rests_from_) return false;
        restart_refused();
        continue;
      }
      if (!start(wqe)) return false;
    } else if (wqe.packets == 0) {  // a local operation, done when it started
      ++cursor_index_;
      continue;
    }
    const std::optional<u64> stopped_before = stopped_at_;
    const u32 psns = build(wqe, out);
    if (psns == 0) {
      if (stopped_at_ != stopped_before) continue;
      if (copies_ != nullptr && copies_->is_reading()) timer_base_ = now;  // not the peer's silence
      return false;
    }
    out.urgency = urgency_of(wqe, out, psns);
    note_ack_request(out.headers.bth, now);
    sent(wqe, psns, out.headers.bth.ack_req, now);
    return true;
  }
  return false;
}

// A program that requests one completion of many waits for that one.
Urgency RCRequester::urgency_of(const SendWQE& wqe, const TxPacket& packet, u32 psns) {
  const bool awaited =
      (wqe.wr.signaled || qp_.signal_all) && cursor_.distance_to(wqe.last_psn) < psns;
  const u32 run = awaited ? std::exchange(unawaited_, 0) : unawaited_ += packet.packets;
  if (!waits_for_response()) return Urgency::kFirst;
  return awaited && run >= kLongRun ? Urgency::kNow : Urgency::kWithMore;
}

void RCRequester::sent(const SendWQE& wqe, u32 psns, bool answered, Time now) {
  if (!waits_for_response()) timer_base_ = now;
  if (cursor_ == frontier_) {
    if (answered) probe_timer_.on_sent(cursor_, now);
    if (scoreboard_) scoreboard_->on_sent(cursor_);
    frontier_ = frontier_.advanced(psns);
    if (ack_signals_) ack_signals_->on_sent({cursor_, psns, in_flight()}, now);
  } else {
    ++counters_.retransmitted_packets;
    if (ack_signals_) ack_signals_->on_resent(cursor_, psns);
    if (scoreboard_) note_resent(psns, now);
  }
  const u32 left = cursor_.distance_to(wqe.last_psn) + 1;
  cursor_ = cursor_.advanced(psns);
  if (psns == left) ++cursor_index_;
  note_share();
}

u32 RCRequester::window_packets(Time now) {
  const u32 packets = share_.packets(window_.packets());
  return ack_signals_ ? std::min(packets, ack_signals_->window_packets(mtu(), now)) : packets;
}

// Returns the PSNs that the packet takes; 0 if none may leave now.
u32 RCRequester::build(SendWQE& wqe, TxPacket& out) {
  out.destination = nullptr;
  out.payload.clear();
  out.headers.bth.psn = cursor_;
  out.headers.bth.solicited_event = false;
  out.headers.bth.ack_req = true;
  out.headers.bth.takes_sack = scoreboard_ != nullptr;
  out.headers.xrceth.xrc_srq = wqe.wr.xrc_srq;
  if (wqe.wr.op == SendOp::kRDMARead) return build_read(wqe, out);
  if (is_atomic(wqe.wr.op)) return build_atomic(wqe, out);
  if (wqe.wr.op == SendOp::kFlush) return build_flush(wqe, out);
  if (wqe.wr.op == SendOp::kAtomicWrite) return build_atomic_write(wqe, out);
  return build_message(wqe, out);
}

// Requests one piece of a READ, from the cursor to the next multiple of the chunk. IBTA 9.7.3.1
// would request the whole READ at once; to the responder a piece is a READ of its own.
u32 RCRequester::build_read(const SendWQE& wqe, TxPacket& out) {
  if (cursor_ == frontier_ && !take_rd_atomic()) return 0;
  const u32 packet = wqe.first_psn.distance_to(cursor_);
  const u32 piece = psns_of_piece(wqe, cursor_);
  const u32 psns = scoreboard_ ? unanswered_psns(piece) : piece;
  const u64 offset = u64{packet} * mtu();
  const u64 length = std::min<u64>(u64{psns} * mtu(), wqe.length_bytes - offset);
  out.headers.bth.opcode = {Service::kRC, Op::kRDMAReadRequest};
  out.headers.reth = {.virtual_address = wqe.wr.remote_address + offset,
                      .r_key = wqe.wr.r_key,
                      .dma_length = static_cast<u32>(length)};
  return psns;
}

u32 RCRequester::psns_of_piece(const SendWQE& wqe, PSN psn) const {
  if (wqe.wr.op != SendOp::kRDMARead) return 1;
  const u32 packet = wqe.first_psn.distance_to(psn);
  return std::min(chunk_packets_ - packet % chunk_packets_, wqe.packets - packet);
}

u32 RCRequester::build_atomic(const SendWQE& wqe, TxPacket& out) {
  if (cursor_ == frontier_ && !take_rd_atomic()) return 0;
  const bool swap = wqe.wr.op == SendOp::kCompareSwap;
  out.headers.bth.opcode = {Service::kRC, swap ? Op::kCmpSwap : Op::kFetchAdd};
  out.headers.atomic = {.virtual_address = wqe.wr.remote_address,
                        .r_key = wqe.wr.r_key,
                        .swap_or_add = wqe.wr.swap_or_add,
                        .compare = swap ? wqe.wr.compare : 0};
  return 1;
}

u32 RCRequester::build_flush(const SendWQE& wqe, TxPacket& out) {
  if (cursor_ == frontier_ && !take_rd_atomic()) return 0;
  out.headers.bth.opcode = {Service::kRC, Op::kFlush};
  out.headers.feth = wqe.wr.flush;
  out.headers.reth = {.virtual_address = wqe.wr.remote_address,
                      .r_key = wqe.wr.r_key,
                      .dma_length = wqe.wr.flush_length};
  return 1;
}

u32 RCRequester::build_atomic_write(const SendWQE& wqe, TxPacket& out) {
  if (!may_build(load_payload(wqe, 0, kAtomicBytes, out.payload))) return 0;
  if (cursor_ == frontier_ && !take_rd_atomic()) return 0;
  out.headers.bth.opcode = {Service::kRC, Op::kAtomicWrite};
  out.headers.reth = {
      .virtual_address = wqe.wr.remote_address, .r_key = wqe.wr.r_key, .dma_length = kAtomicBytes};
  return 1;
}

// Counts a READ piece or atomic that was never sent before. Returns false if the peer accepts no
// more.
bool RCRequester::take_rd_atomic() {
  if (rd_atomic_ >= qp_.max_rd_atomic) return false;
  ++rd_atomic_;
  if (queue_.at(cursor_index_).wr.op == SendOp::kRDMARead) next_ssn_ = next_ssn_.next();
  return true;
}

u32 RCRequester::build_message(SendWQE& wqe, TxPacket& out) {
  const u32 packet = wqe.first_psn.distance_to(cursor_);
  const u64 offset = u64{packet} * mtu();
  const u32 train = train_length(wqe, packet);
  if (train > 1 && load_train(wqe, offset, train, out.payload)) {
    out.packets = train;
  } else {
    const u32 length = static_cast<u32>(std::min<u64>(mtu(), wqe.length_bytes - offset));
    if (!may_build(load_payload(wqe, offset, length, out.payload))) return 0;
  }
  const bool first = packet == 0, last = packet + 1 == wqe.packets;
  const MessageOps ops = message_ops(wqe.wr.op);
  BTH& bth = out.headers.bth;
  bth.opcode = {Service::kRC, first ? (last ? ops.only : ops.first) : last ? ops.last : ops.middle};
  bth.solicited_event = last && wqe.wr.solicited;
  bth.ack_req = wants_ack(wqe, last);
  since_ack_request_ += out.packets - 1;
  out.headers.reth = {.virtual_address = wqe.wr.remote_address,
                      .r_key = wqe.wr.r_key,
                      .dma_length = wqe.length_bytes};
  out.headers.imm.value = wqe.wr.immediate;
  out.headers.ieth.r_key = wqe.wr.invalidate;
  return out.packets;
}

// No trains if each packet must be examined by itself, or if it is time to ask for an ACK.
Trains RCRequester::may_build_trains(Trains trains, Time now) const {
  const bool may = trains == Trains::kYes && !scoreboard_ && !ack_signals_ &&
                   now - ack_requested_at_ < ack_request_period_;
  return may ? Trains::kYes : Trains::kNo;
}

// Returns how many packets of the message, from this one on, are new middle packets that ask for no
// ACK.
u32 RCRequester::train_length(const SendWQE& wqe, u32 packet) const {
  if (trains_ == Trains::kNo || packet == 0 || cursor_ != frontier_) return 1;
  return std::min({kLongestTrain, wqe.packets - 1 - packet,
                   limits_.ack_interval - 1 - since_ack_request_,
                   may_be_in_flight_ - 1 - in_flight()});
}

// Returns false if the data is not accessible in one piece.
bool RCRequester::load_train(const SendWQE& wqe, u64 offset, u32 packets, PayloadList& out) const {
  if (wqe.inline_bytes != nullptr) return false;
  const std::optional<Bytes> payload =
      in_one_piece(memory_, qp_.pd, wqe.wr.sg_list, offset, u64{packets} * mtu());
  if (payload) out.add(*payload);
  return payload.has_value();
}

MemoryFault RCRequester::load_payload(const SendWQE& wqe, u64 offset, u32 length,
                                      PayloadList& out) const {
  if (length == 0) return MemoryFault::kNone;
  if (wqe.inline_bytes != nullptr) {
    out.add({wqe.inline_bytes + offset, length});
    return MemoryFault::kNone;
  }
  return gather(memory_, qp_.pd, wqe.wr.sg_list, offset, length, out, copies_);
}

// Returns false if the packet must wait for its payload, or if the fault has stopped the WQE.
bool RCRequester::may_build(MemoryFault payload) {
  if (payload == MemoryFault::kNone) return true;
  if (payload != MemoryFault::kLater) stop_at(cursor_index_, WQEStatus::kLocalProtection);
  return false;
}

// Builds the oldest unacknowledged packet once more, wherever the cursor is.
bool RCRequester::build_probe(TxPacket& out) {
  probe_due_ = false;
  const PSN cursor = std::exchange(cursor_, unacked_);
  const u64 index = std::exchange(cursor_index_, done_);
  const std::optional<u64> stopped_before = stopped_at_;
  const u32 psns = build(queue_.at(done_), out);
  if (stopped_at_ != stopped_before) return false;  // all are sent from here on
  cursor_ = cursor;
  cursor_index_ = index;
  probe_due_ = psns == 0;  // its payload has not arrived
  if (probe_due_) return false;
  out.headers.bth.ack_req = true;
  probe_ = {unacked_.advanced(psns), cursor_};
  if (ack_signals_) ack_signals_->on_resent(unacked_, psns);
  if (scoreboard_) scoreboard_->on_resent(unacked_, psns, frontier_);
  ++counters_.roce_adp_retrans;
  ++counters_.retransmitted_packets;
  return true;
}

// Returns true if packets follow at once that can ask for the ACK. A local operation has no packet,
// and one that would rather be copied waits for the ACK.
bool RCRequester::more_follows() {
  const u64 next = cursor_index_ + 1;
  if (next == queue_.end_index() || next == stopped_at_) return false;
  const SendWQE& wqe = queue_.at(next);
  if (is_local_operation(wqe.wr.op)) return false;
  return next < fresh_ || (may_start(wqe) && has_credit(wqe) && !prefers_short_cut(wqe));
}

// Packets that are sent slowly, limited by a rate, ask more often, so that silence does not look
// like loss.
void RCRequester::note_ack_request(BTH& bth, Time now) {
  if (!waits_for_response()) ack_requested_at_ = now;
  if (!bth.ack_req && now - ack_requested_at_ >= ack_request_period_) {
    bth.ack_req = true;
    since_ack_request_ = 0;
  }
  if (bth.ack_req) ack_requested_at_ = now;
}

// Sets BTH.A so that the window and the queue keep moving: if the application waits, if nothing
// follows, at intervals, and always if ACKs report congestion. Responses to READs and atomics
// acknowledge by themselves.
bool RCRequester::wants_ack(const SendWQE& wqe, bool last) {
  const bool want = ack_signals_ || (scoreboard_ && resends()) ||
                    ++since_ack_request_ >= limits_.ack_interval ||
                    in_flight() + 1 >= may_be_in_flight_ ||
                    (last && (wqe.wr.signaled || qp_.signal_all || !more_follows()));
  if (want) since_ack_request_ = 0;
  return want;
}

}  // namespace verbena
