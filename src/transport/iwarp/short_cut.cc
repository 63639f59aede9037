#include "transport/iwarp/short_cut.h"

#include <algorithm>

namespace verbena::iwarp {
namespace {

constexpr u32 kWorthWaiting = 64u << 10;  // bytes
constexpr u32 kMaxPassedBy = 16;
constexpr Duration kFirstPause = us(20), kLongestPause = ms(1), kPatience = ms(20);
// Twice as many requests after each further refusal, or search in vain.
constexpr u64 backoff(u32 times) { return u64{1} << std::min(times, 10u); }

}  // namespace

void ShortCut::begin(u32 segment_bytes) {
  end();
  is_open_ = finder_ != nullptr;
  packet_bytes_ = std::max(segment_bytes, 1u);
}

void ShortCut::end() {
  is_open_ = false;
  peer_.reset();
  next_look_ = not_before_ = 0;
  looks_ = refusals_ = passed_by_ = 0;
  last_passed_ = ~u64{0};
  copied_bytes_ = 0;
  late_ = {};
  waits_until_.reset();
  wakes_at_ = Time::never();
}

bool ShortCut::fits(const SendWQE& wqe) const {
  return PeerCopy::is_copy(wqe.wr.op) && wqe.length_bytes != 0 &&
         (wqe.wr.op == SendOp::kRDMAWrite || qp_.max_rd_atomic != 0);
}

bool ShortCut::holds(const SendWQE& wqe, u64 index) const {
  if (late_.has_begun()) return true;
  return peer_ != nullptr && fits(wqe) &&
         (wqe.length_bytes >= kWorthWaiting || passed_by_ >= kMaxPassedBy || is_inside()) &&
         !is_paused(wqe, index);
}

bool ShortCut::find_peer(u64 index) {
  if (peer_ != nullptr) return true;
  if (!is_open_ || index < next_look_) return false;
  peer_ = finder_->find(qp_);
  if (peer_ == nullptr) next_look_ = index + backoff(looks_++);
  return peer_ != nullptr;
}

// A peer that waits for the first message of the stream has to get it. RFC 5044, 7.1.2
bool ShortCut::may_copy(const Progress& progress) const {
  return progress.is_between && (progress.sent != 0 || progress.received != 0) &&
         peer_->has_executed(qp_, PSN(progress.sent));
}

u32 ShortCut::take(SendQueue& queue, u64 first, const Progress& progress, EngineCounters& counters,
                   Time now) {
  if (late_.has_begun())
    if (const std::optional<u32> done = follow_late_copy(queue, first, counters)) return *done;
  if (!fits(queue.at(first)) || is_paused(queue.at(first), first) || !find_peer(first)) return 0;
  if (!may_copy(progress)) {
    on_busy(queue.at(first), first, now);
    return 0;
  }
  passed_by_ = 0;
  waits_until_.reset();
  if (is_late(queue.at(first))) {
    begin_late_copy(queue, first);
    return 0;
  }
  u32 finished = 0;
  for (u64 spent = 0; spent < PeerCopy::kTurnBytes;) {
    PeerCopy copy;
    collect(copy, queue, first + finished, Where::kHere);
    if (copy.range_count == 0) {
      pass_by(queue, first + finished);
      return finished;
    }
    if (!copy.carry_out(*peer_, qp_)) {
      distrust(queue.at(first + finished), first + finished);
      return finished;
    }
    finished += on_copied(copy, counters);
    spent += copy.cost();
  }
  wakes_at_ = now;  // other QPs have a turn before
  return finished;
}

void ShortCut::collect(PeerCopy& copy, SendQueue& queue, u64 first, Where where) const {
  const PeerCopy::Side side{
      .memory = memory_, .pd = qp_.pd, .packet_bytes = packet_bytes_, .where = where};
  copy.collect(side, queue, first, queue.end_index(), copied_bytes_,
               [this](const SendWQE& wqe) { return fits(wqe); });
}

// Returns how many requests are done.
u32 ShortCut::on_copied(const PeerCopyCounts& copy, EngineCounters& counters) {
  copy.count_in(counters);
  refusals_ = 0;
  copied_bytes_ = copy.finished == 0 ? copied_bytes_ + copy.bytes : 0;
  return copy.finished;
}

void ShortCut::begin_late_copy(SendQueue& queue, u64 first) {
  PeerCopy copy;
  collect(copy, queue, first, Where::kLate);
  if (copy.range_count == 0)
    distrust(queue.at(first), first);
  else if (!late_.begin(copy, first, *peer_, qp_, memory_, *lane_))
    give_up_waiting();
}

// Returns how many requests are done, or nullopt if a part of one is, and its next part may begin.
std::optional<u32> ShortCut::follow_late_copy(SendQueue& queue, u64 first,
                                              EngineCounters& counters) {
  switch (late_.look(*lane_)) {
    case LateCopy::Result::kRunning: return 0;
    case LateCopy::Result::kRefused: distrust(queue.at(first), first); return 0;
    case LateCopy::Result::kDone: break;
  }
  peer_->on_copied(qp_, late_.work());
  const u32 finished = on_copied(late_.counts(), counters);
  return finished != 0 ? std::optional(finished) : std::nullopt;
}

// The request becomes a message, unless it waits.
void ShortCut::on_busy(const SendWQE& wqe, u64 index, Time now) {
  if (!holds(wqe, index)) {
    if (std::exchange(last_passed_, index) != index) ++passed_by_;
    return;
  }
  if (!waits_until_) {
    waits_until_ = now + kPatience;
    pause_ = kFirstPause;
  }
  if (now >= *waits_until_) return distrust(wqe, index);
  wakes_at_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

// Nothing of the request can be copied: its memory is not in this process, or a key does not allow
// it, which the general way reports.
void ShortCut::pass_by(SendQueue& queue, u64 index) {
  if (index != queue.end_index() && fits(queue.at(index))) distrust(queue.at(index), index);
}

void ShortCut::distrust(const SendWQE& wqe, u64 index) {
  give_up_waiting();
  if (is_late(wqe))
    late_.pause_from(index);
  else
    not_before_ = index + backoff(refusals_++);
}

// The whole request becomes a message.
void ShortCut::give_up_waiting() {
  copied_bytes_ = 0;
  passed_by_ = 0;
  waits_until_.reset();
  wakes_at_ = Time::never();
}

}  // namespace verbena::iwarp
