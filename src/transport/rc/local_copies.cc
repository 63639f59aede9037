#include "transport/rc/local_copies.h"

namespace verbena {

namespace {

constexpr u32 kWorthWaiting = 64u << 10;  // bytes; also the least READ that is worth deferring
constexpr u32 kMaxPassedBy = 16;          // WQEs in a row that find others in flight
// The number of WQEs that go as packets after the peer has refused one: twice as many after each
// further refusal, up to 64.
constexpr u64 pause_after(u32 refusals) { return u64{1} << std::min(refusals, 6u); }

}  // namespace

LocalCopies::LocalCopies(const EngineParts& parts, const RCLimits& limits, EngineCounters& counters)
    : qp_(parts.attributes),
      memory_(parts.memory),
      limits_(limits),
      counters_(counters),
      peers_(parts.peers),
      habit_(parts.habit),
      lane_(parts.send_copies) {}

void LocalCopies::reset() {
  peer_.reset();
  no_copy_before_ = 0;
  refusals_ = passed_by_ = copied_bytes_ = 0;
  has_copied_ = false;
  late_.reset();
  end_rest();
  deferred_.reset();
  passed_until_ = 0;
}

void LocalCopies::find_peer() {
  if (peers_ != nullptr && qp_.type == QPType::kRC) peer_ = peers_->find(qp_);
}

std::optional<u64> LocalCopies::give_up() {
  const std::optional<u64> first = deferred_ ? std::optional(deferred_->first) : std::nullopt;
  forget_late();
  end_rest();
  deferred_.reset();
  return first;
}

bool LocalCopies::fits(const SendWQE& wqe) const {
  return peer_ != nullptr && PeerCopy::is_copy(wqe.wr.op) && wqe.length_bytes != 0 &&
         (wqe.wr.op == SendOp::kRDMAWrite || qp_.max_rd_atomic != 0);
}

bool LocalCopies::prefers_copy(const SendWindow& window, const SendWQE& wqe) const {
  const bool is_worth_it = wqe.length_bytes >= kWorthWaiting || wqe.wr.op == SendOp::kRDMARead ||
                           passed_by_ >= kMaxPassedBy;
  return is_worth_it && fits(wqe) && !is_paused(wqe, window.fresh());
}

bool LocalCopies::is_paused(const SendWQE& wqe, u64 index) const {
  if (is_late(wqe)) return late_ != nullptr && late_->is_paused(index);
  return index < no_copy_before_;
}

// Returns true if the peer has executed all that was sent. Where nothing is in flight, that fails
// if one of the two has been reset: packets reveal it. IBTA 9.7.4.1.2
bool LocalCopies::is_executed(const SendWindow& window, InFlight in_flight) const {
  return in_flight != InFlight::kWork && peer_->has_executed(qp_, window.frontier());
}

LocalCopies::Taken LocalCopies::take(SendWindow& window, u64 end, InFlight in_flight, Time now) {
  if (!fits(window.current()) || is_paused(window.current(), window.fresh()))
    return Taken::kNothing;
  if (!is_executed(window, in_flight)) {
    if (in_flight != InFlight::kNothing) ++passed_by_;
    return Taken::kNothing;
  }
  passed_by_ = 0;
  if (is_late(window.current())) return begin_late(window, end);
  if (take_deferral(window, in_flight, now)) return Taken::kWork;
  return copy_fresh(window, end, now);
}

LocalCopies::Taken LocalCopies::copy_fresh(SendWindow& window, u64 end, Time now) {
  for (u64 spent = 0; spent < PeerCopy::kTurnBytes;) {
    PeerCopy copy;
    collect(copy, window, window.fresh(), end);
    const bool is_refused = copy.range_count != 0 && !copy.carry_out(*peer_, qp_);
    if (is_refused) distrust(window.fresh());
    if (is_refused || copy.range_count == 0) return spent != 0 ? Taken::kWork : Taken::kNothing;
    finish(copy, window);
    spent += copy.cost();
  }
  rests_from_ = now;
  return Taken::kTurn;
}

// The whole WQE goes as packets.
void LocalCopies::distrust(u64 index) {
  copied_bytes_ = 0;
  no_copy_before_ = index + pause_after(refusals_++);
}

// From the WQE `first` on.
void LocalCopies::collect(PeerCopy& copy, SendWindow& window, u64 first, u64 end,
                          Where where) const {
  const PeerCopy::Side side{.memory = memory_,
                            .pd = qp_.pd,
                            .packet_bytes = limits_.packet_size(qp_.path_mtu),
                            .where = where};
  copy.collect(side, window.queue(), first, end, copied_bytes_,
               [this](const SendWQE& wqe) { return fits(wqe); });
}

void LocalCopies::finish(const PeerCopyCounts& copy, SendWindow& window) {
  note_copied(copy);
  for (u32 i = 0; i < copy.finished; ++i) window.skip();
}

void LocalCopies::note_copied(const PeerCopyCounts& copy) {
  copy.count_in(counters_);
  if (habit_ != nullptr) habit_->on_copied(copy.cost());
  has_copied_ = true;
  refusals_ = 0;
  copied_bytes_ = copy.finished == 0 ? copied_bytes_ + static_cast<u32>(copy.bytes) : 0;
}

// --- copies that end late

bool LocalCopies::is_late(const SendWQE& wqe) const {
  return lane_ != nullptr && LateCopy::is_for(memory_, qp_.pd, wqe);
}

LocalCopies::Taken LocalCopies::begin_late(SendWindow& window, u64 end) {
  PeerCopy copy;
  collect(copy, window, window.fresh(), end, Where::kLate);
  if (copy.range_count == 0) return Taken::kNothing;
  if (late_ == nullptr) late_ = std::make_unique<LateCopy>();
  if (late_->begin(copy, window.fresh(), *peer_, qp_, memory_, *lane_)) return Taken::kBegun;
  copied_bytes_ = 0;
  return Taken::kNothing;
}

bool LocalCopies::follow(SendWindow& window) {
  switch (late_->look(*lane_)) {
    case LateCopy::Result::kRunning: return false;
    case LateCopy::Result::kDone:
      peer_->on_copied(qp_, late_->work());
      finish(late_->counts(), window);
      return true;
    case LateCopy::Result::kRefused:
      late_->pause_from(window.fresh());
      copied_bytes_ = 0;
      return true;
  }
  return false;
}

// --- operations that are deferred until the program polls

// A READ that overtakes executed requests completes only after a poll that brings the ACK, so it
// may wait for a long one that follows, and be copied with it. A WRITE with others behind it is
// copied with those.
bool LocalCopies::may_be_deferred(const SendWQE& wqe, InFlight in_flight, bool is_alone) const {
  if (is_late(wqe)) return false;
  const bool is_long = wqe.length_bytes >= kWorthWaiting;
  if (wqe.wr.op == SendOp::kRDMARead) return is_long || in_flight != InFlight::kNothing;
  return is_alone && habit_ != nullptr && wqe.length_bytes < PeerCopy::kPartBytes;
}

// Returns false if the operation must be copied at once. WRITEs behind deferred ones always wait
// for them.
bool LocalCopies::take_deferral(SendWindow& window, InFlight in_flight, Time now) {
  const SendWQE& wqe = window.current();
  const bool is_alone = deferred_ || window.fresh() + 1 == window.queue().end_index();
  if (!may_be_deferred(wqe, in_flight, is_alone)) return false;
  if (wqe.wr.op == SendOp::kRDMARead) {
    defer(window, now);
    return true;
  }
  const bool is_late =
      deferred_ && !habit_->on_waited(PollHabit::End::kPost, now, deferred_->bytes);
  const bool may_wait = habit_->may_wait(now);
  if (!deferred_ && !may_wait) return false;
  defer(window, now);
  if (is_late || !may_wait || fills_a_call(window)) copy_deferred(window, now);
  return true;
}

void LocalCopies::defer(SendWindow& window, Time now) {
  const SendWQE& wqe = window.current();
  if (!deferred_)
    deferred_ = Deferred{.first = window.fresh(), .until = now + kDeferral, .op = wqe.wr.op};
  deferred_->bytes += wqe.length_bytes;
  window.skip();
}

bool LocalCopies::fills_a_call(const SendWindow& window) const {
  return deferred_->bytes >= PeerCopy::kPartBytes ||
         window.fresh() - deferred_->first >= PeerMemory::kMaxRanges;
}

// Only SENDs pass READs: other requests would be seen as executed too early, or may rely on the
// order. Nothing passes WRITEs.
bool LocalCopies::may_follow_deferred(const SendWQE& wqe, InFlight in_flight) const {
  const bool may_pass = deferred_->op == SendOp::kRDMARead && !wqe.wr.fence &&
                        (wqe.wr.op == SendOp::kSend || wqe.wr.op == SendOp::kSendWithImmediate);
  return may_pass ||
         (wqe.wr.op == deferred_->op && fits(wqe) && may_be_deferred(wqe, in_flight, true));
}

void LocalCopies::end_deferral(SendWindow& window, PollHabit::End end, Time now) {
  if (deferred_->op == SendOp::kRDMAWrite) (void)habit_->on_waited(end, now, deferred_->bytes);
  copy_deferred(window, now);
}

void LocalCopies::copy_all(SendWindow& window) {
  while (is_waiting()) copy_deferred(window, deferred_->until);
}

// Copies as much as a turn allows.
void LocalCopies::copy_deferred(SendWindow& window, Time now) {
  for (u64 spent = 0; is_waiting();) {
    if (spent >= PeerCopy::kTurnBytes) {
      deferred_->until = now;
      return;
    }
    PeerCopy copy;
    collect(copy, window, deferred_->first, window.fresh());
    if (copy.range_count == 0 || !copy.carry_out(*peer_, qp_)) {
      distrust(deferred_->first);
      deferred_->refused = true;
      return;
    }
    note_copied(copy);
    deferred_->first += copy.finished;
    skip_passed(window);
    spent += copy.cost();
  }
}

void LocalCopies::skip_passed(SendWindow& window) {
  while (deferred_->first != window.fresh() &&
         window.queue().at(deferred_->first).wr.op != deferred_->op)
    ++deferred_->first;
  if (deferred_->first == window.fresh()) deferred_.reset();
}

void LocalCopies::restart(SendWindow& window) {
  if (deferred_->op == SendOp::kRDMARead) passed_until_ = std::max(passed_until_, window.fresh());
  window.restart_at(deferred_->first);
  deferred_.reset();
}

}  // namespace verbena
