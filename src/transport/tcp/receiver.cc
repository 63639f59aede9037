#include "transport/tcp/receiver.h"

#include <algorithm>
#include <utility>

namespace verbena::tcp {

void Receiver::on_segment(const Segment& segment, Time now) {
  if (segment.syn) {
    answers_syn_ = true;
    return acknowledge();
  }
  if (segment.bytes == 0) return;
  note_mark(segment);
  const Urgency urgency = take(segment);
  ++unacknowledged_;
  if (urgency == Urgency::kNow || segment.push || unacknowledged_ >= config_.segments_per_ack)
    return acknowledge();
  if (timer_ == Time::never()) timer_ = now + config_.ack_delay;
}

// RFC 3168, 6.1.3: echoes until the sender confirms. DCTCP's echo is that of each segment; when it
// changes, the segments before are acknowledged first. RFC 8257, 3.2.
void Receiver::note_mark(const Segment& segment) {
  if (!config_.ecn) return;
  const bool is_marked = segment.ecn == ECN::kCE;
  if (config_.control != ControlKind::kDCTCP) {
    if (segment.cwr) echoes_ = false;
    if (is_marked) echoes_ = true;
    return;
  }
  if (segment.ecn == ECN::kNotECT || is_marked == echoes_) return;
  if (unacknowledged_ != 0) acknowledge();
  echoes_ = is_marked;
}

// Acknowledges a segment at once if it is not in order, fills a gap, or is a duplicate. RFC 5681,
// 4.2.
Receiver::Urgency Receiver::take(const Segment& segment) {
  const u64 end = segment.sequence + segment.bytes;
  if (end <= next_) {
    has_duplicate_ = true;
    ++duplicates_;
    return Urgency::kNow;
  }
  if (end > next_ + room()) return Urgency::kNow;  // RFC 9293, 3.10.7.4: not acceptable
  note_push(segment);
  if (segment.sequence > next_) {
    take_beyond(segment);
    return Urgency::kNow;
  }
  if (keeps_unread_) unread_ += end - next_;
  next_ = end;
  if (beyond_.empty()) return Urgency::kMayWait;
  close_gap();
  return Urgency::kNow;
}

void Receiver::note_push(const Segment& segment) {
  if (!segment.push) return;
  const u64 end = segment.sequence + segment.bytes;
  const auto at = std::ranges::lower_bound(pushes_, end, {}, &Push::end);
  if (at == pushes_.end() || at->end != end) pushes_.insert(at, {end, segment.word});
}

// Joins the segment with ranges that it touches.
void Receiver::take_beyond(const Segment& segment) {
  SACKBlock block{segment.sequence, segment.sequence + segment.bytes};
  auto first = std::ranges::lower_bound(beyond_, block.begin, {}, &SACKBlock::end);
  if (first != beyond_.end() && first->begin <= block.begin && first->end >= block.end) {
    has_duplicate_ = true;
    ++duplicates_;
  }
  auto last = first;
  for (; last != beyond_.end() && last->begin <= block.end; ++last) {
    std::erase(newest_, last->begin);
    block.begin = std::min(block.begin, last->begin);
    block.end = std::max(block.end, last->end);
  }
  first = beyond_.erase(first, last);
  beyond_.insert(first, block);
  newest_.push_front(block.begin);
}

void Receiver::close_gap() {
  auto last = beyond_.begin();
  for (; last != beyond_.end() && last->begin <= next_; ++last) {
    std::erase(newest_, last->begin);
    if (last->end <= next_) continue;
    if (keeps_unread_) unread_ += last->end - next_;
    next_ = last->end;
  }
  beyond_.erase(beyond_.begin(), last);
}

void Receiver::on_timer(Time now) {
  if (now < timer_) return;
  acknowledge();
}

u64 Receiver::room() const {
  return config_.receive_buffer - std::min(unread_, config_.receive_buffer);
}

// Advertises the window's end again when it has moved by two segments, as for arrivals. RFC 9293,
// 3.8.6.2.2.
void Receiver::on_read(u64 bytes) {
  unread_ -= std::min(bytes, unread_);
  const u64 least = std::min(config_.receive_buffer / 2, u64{2} * config_.mss);
  if (next_ + room() >= told_end_ + least) acknowledge();
}

// --- acknowledgements

void Receiver::acknowledge() {
  timer_ = Time::never();
  unacknowledged_ = 0;
  Segment acknowledgement;
  fill(acknowledgement);
  owed_.push_back(acknowledgement);
}

// The block that contains the segment comes first, then those that were reported last. RFC 2018, 4.
void Receiver::fill(Segment& out) {
  out.ack = true;
  out.syn = std::exchange(answers_syn_, false);
  out.acknowledgement = next_;
  out.window = room();
  told_end_ = next_ + room();
  out.ece = echoes_;
  out.duplicate = std::exchange(has_duplicate_, false) && config_.sack;
  if (!config_.sack) return;
  const u32 most = Segment::kMostBlocks - (out.duplicate ? 1 : 0);
  for (const u64 begin : newest_) {
    if (out.block_count == most) break;
    out.blocks[out.block_count++] =
        *std::ranges::lower_bound(beyond_, begin, {}, &SACKBlock::begin);
  }
}

bool Receiver::poll_acknowledgement(Segment& out) {
  if (owed_.empty()) return false;
  out = owed_.front();
  owed_.erase(owed_.begin());
  return true;
}

std::optional<u32> Receiver::poll_message() {
  if (pushes_.empty() || pushes_.front().end > next_) return std::nullopt;
  const u32 word = pushes_.front().word;
  pushes_.erase(pushes_.begin());
  return word;
}

}  // namespace verbena::tcp
