// A requester's copies to and from a peer on the same host: transport/peer_memory.h. Only while the
// peer has executed everything in flight, so that the order of the queue is kept. IBTA Vol 1,
// 10.8.3.3 (ordering rules).
#include "transport/local_operations.h"
#include "transport/rc/requester.h"

#include <algorithm>

namespace verbena {

namespace {

constexpr u32 kWorthWaiting = 64u << 10;  // bytes; also the least READ that is worth deferring
constexpr u32 kMaxPassedBy = 16;          // WQEs in a row that find others in flight
// The number of WQEs that go as packets after the peer has refused one: twice as many after each
// further refusal, up to 64.
constexpr u64 distrust(u32 refusals) { return u64{1} << std::min(refusals, 6u); }

}  // namespace

bool RCRequester::fits_short_cut(const SendWQE& wqe) const {
  return peer_ != nullptr && PeerCopy::is_copy(wqe.wr.op) && wqe.length_bytes != 0 &&
         (wqe.wr.op == SendOp::kRDMAWrite || qp_.max_rd_atomic != 0);
}

// Returns true if the WQE should wait for the packets in flight instead of becoming packets: it is
// long, or a READ, whose response takes no less time, or packets would follow packets forever.
bool RCRequester::prefers_short_cut(const SendWQE& wqe) const {
  const bool is_worth_it = wqe.length_bytes >= kWorthWaiting || wqe.wr.op == SendOp::kRDMARead ||
                           passed_by_ >= kMaxPassedBy;
  return is_worth_it && fits_short_cut(wqe) && fresh_ >= no_short_cut_before_;
}

// Returns true if the packets in flight only wait for acknowledgement, since the peer has executed
// them. READs and atomics still wait for data.
bool RCRequester::lets_short_cut_pass() const {
  return cursor_ == frontier_ && rd_atomic_ == 0 && since_ack_request_ == 0 &&
         peer_->has_executed(qp_, frontier_);
}

// Returns true if an operation was done or deferred, or if other QPs have their turn. Precondition:
// the WQE `fresh_` may start.
bool RCRequester::take_short_cut(Time now) {
  if (!fits_short_cut(queue_.at(fresh_)) || fresh_ < no_short_cut_before_) return false;
  const bool waits = waits_for_response();
  if (waits && !lets_short_cut_pass()) {
    ++passed_by_;
    return false;
  }
  // The peer expects another PSN if one of the two has been reset. Packets reveal it. IBTA
  // 9.7.4.1.2
  if (!waits && !peer_->has_executed(qp_, frontier_)) return false;
  passed_by_ = 0;
  if (is_late(queue_.at(fresh_))) return begin_late_copy();
  if (take_deferral(queue_.at(fresh_), now)) return true;
  u64 spent = 0;
  for (;;) {
    PeerCopy copy;
    collect(copy, fresh_, stopped_at_.value_or(queue_.end_index()));
    if (copy.range_count == 0) return spent != 0;
    if (!copy.carry_out(*peer_, qp_)) {
      on_refused(fresh_);
      return spent != 0;
    }
    finish(copy);
    spent += copy.cost();
    if (spent < PeerCopy::kTurnBytes) continue;
    rests_from_ = now;
    return true;
  }
}

// The whole WQE goes as packets.
void RCRequester::on_refused(u64 index) {
  short_cut_bytes_ = 0;
  no_short_cut_before_ = index + distrust(refusals_++);
}

// From the WQE `first` on.
void RCRequester::collect(PeerCopy& copy, u64 first, u64 end, Where where) {
  const PeerCopy::Side side{
      .memory = memory_, .pd = qp_.pd, .packet_octets = mtu(), .where = where};
  copy.collect(side, queue_, first, end, short_cut_bytes_,
               [this](const SendWQE& wqe) { return fits_short_cut(wqe); });
}

void RCRequester::count(const PeerCopyCounts& copy) {
  copy.count_in(counters_);
  if (habit_ != nullptr) habit_->on_copied(copy.cost());
  answered_ = true;
  refusals_ = 0;
  short_cut_bytes_ = copy.finished == 0 ? short_cut_bytes_ + static_cast<u32>(copy.bytes) : 0;
}

void RCRequester::finish(const PeerCopyCounts& copy) {
  count(copy);
  for (u32 i = 0; i < copy.finished; ++i) skip_fresh();
  skip_local_operations();
}

// The WQE has started, and takes no PSNs.
void RCRequester::skip_fresh() {
  queue_.at(fresh_).packets = 0;
  cursor_index_ = ++fresh_;
}

// --- copies that end late

bool RCRequester::is_late(const SendWQE& wqe) const {
  return copies_ != nullptr && LateCopy::is_for(memory_, qp_.pd, wqe);
}

// Returns false if the WQE `fresh_` goes as packets.
bool RCRequester::begin_late_copy() {
  PeerCopy copy;
  collect(copy, fresh_, stopped_at_.value_or(queue_.end_index()), Where::kLate);
  if (copy.range_count == 0) return false;
  if (late_.begin(copy, *peer_, qp_, memory_, *copies_)) return true;
  on_refused(fresh_);
  return false;
}

void RCRequester::follow_late_copy() {
  switch (late_.look(*copies_)) {
    case LateCopy::Result::kRunning: return;
    case LateCopy::Result::kDone:
      peer_->on_copied(qp_, late_.work());
      return finish(late_.counts());
    case LateCopy::Result::kRefused: return on_refused(fresh_);
  }
}

// --- operations that are deferred until the program polls

// A READ that overtakes executed requests completes only after a poll that brings the ACK, so it
// may wait for a long one that follows, and be copied with it. A WRITE with others behind it is
// copied with those.
bool RCRequester::may_be_deferred(const SendWQE& wqe) const {
  if (is_late(wqe)) return false;
  const bool is_long = wqe.length_bytes >= kWorthWaiting;
  if (wqe.wr.op == SendOp::kRDMARead) return is_long || waits_for_response();
  const bool is_alone = deferred_ || fresh_ + 1 == queue_.end_index();
  return is_alone && habit_ != nullptr && wqe.length_bytes < PeerCopy::kPartBytes;
}

// Returns false if the operation must be copied at once. WRITEs behind deferred ones always wait
// for them.
bool RCRequester::take_deferral(const SendWQE& wqe, Time now) {
  if (!may_be_deferred(wqe)) return false;
  if (wqe.wr.op == SendOp::kRDMARead) {
    defer(wqe, now);
    return true;
  }
  const bool is_late =
      deferred_ && !habit_->on_waited(PollHabit::End::kPost, now, deferred_->bytes);
  const bool may_wait = habit_->may_wait(now);
  if (!deferred_ && !may_wait) return false;
  defer(wqe, now);
  if (is_late || !may_wait || fills_a_call()) copy_deferred(now);
  return true;
}

void RCRequester::defer(const SendWQE& wqe, Time now) {
  if (!deferred_) deferred_ = Deferred{.op = wqe.wr.op, .first = fresh_, .until = now + kDeferral};
  deferred_->bytes += wqe.length_bytes;
  skip_fresh();
  skip_local_operations();
}

bool RCRequester::fills_a_call() const {
  return deferred_->bytes >= PeerCopy::kPartBytes ||
         fresh_ - deferred_->first >= PeerMemory::kMaxRanges;
}

// Returns true if the WQE may start behind deferred operations. Only SENDs pass READs: other
// requests would be seen as executed too early, or may rely on the order. Nothing passes WRITEs.
bool RCRequester::may_follow_deferred(const SendWQE& wqe) const {
  const bool may_pass = deferred_->op == SendOp::kRDMARead && !wqe.wr.fence &&
                        (wqe.wr.op == SendOp::kSend || wqe.wr.op == SendOp::kSendWithImmediate);
  return may_pass || (wqe.wr.op == deferred_->op && fits_short_cut(wqe) && may_be_deferred(wqe));
}

bool RCRequester::run_deferred(Time now) {
  if (!deferred_ || deferred_->refused) return false;
  end_deferral(PollHabit::End::kPoll, now);
  return true;
}

// Ends the deferral.
void RCRequester::end_deferral(PollHabit::End end, Time now) {
  if (deferred_->op == SendOp::kRDMAWrite) (void)habit_->on_waited(end, now, deferred_->bytes);
  copy_deferred(now);
}

// Copies as much as a turn allows.
void RCRequester::copy_deferred(Time now) {
  for (u64 spent = 0; deferred_ && !deferred_->refused;) {
    if (spent >= PeerCopy::kTurnBytes) {
      deferred_->until = now;
      return;
    }
    PeerCopy copy;
    collect(copy, deferred_->first, fresh_);
    if (copy.range_count == 0 || !copy.carry_out(*peer_, qp_)) return refuse_deferred();
    count(copy);
    deferred_->first += copy.finished;
    skip_passed();
    spent += copy.cost();
  }
}

void RCRequester::skip_passed() {
  while (deferred_->first != fresh_ && queue_.at(deferred_->first).wr.op != deferred_->op)
    ++deferred_->first;
  if (deferred_->first == fresh_) deferred_.reset();
}

void RCRequester::refuse_deferred() {
  on_refused(deferred_->first);
  deferred_->refused = true;
  if (unacked_ != frontier_) resend_unacknowledged();  // so that the last asks for its ACK
}

// Sends the deferred operations as packets when all that has passed them is acknowledged, so that
// the order of PSNs is the queue's. The requester then meets the requests that have passed again;
// they are done.
void RCRequester::restart_refused() {
  if (!deferred_ || !deferred_->refused || unacked_ != frontier_) return;
  if (deferred_->op == SendOp::kRDMARead) passed_until_ = std::max(passed_until_, fresh_);
  done_ = fresh_ = cursor_index_ = deferred_->first;
  deferred_.reset();
}

bool RCRequester::has_passed(const SendWQE& wqe) const {
  return fresh_ < passed_until_ && wqe.wr.op != SendOp::kRDMARead;
}

}  // namespace verbena
