#include "transport/tcp/sender.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbena::tcp {
namespace {

constexpr u32 kMostBackingOff = 16;  // doublings; rto_max comes long before

}  // namespace

Sender::Sender(const Config& config)
    : config_(config),
      control_(config.control,
               {.mss = config.mss, .window = u64{config.initial_window} * config.mss}),
      detector_(config_),
      state_(config.handshake ? State::kConnecting : State::kOpen),
      window_end_(config.receive_buffer),
      connect_again_(config.handshake) {}

void Sender::on_write(u64 bytes, u32 word, Time) {
  CHECK(bytes != 0);
  written_ += bytes;
  messages_.push_back({written_, word});
}

// --- acknowledgements

void Sender::on_acknowledgement(const Segment& segment, Time now) {
  if (failed_ || !segment.ack) return;
  if (state_ == State::kConnecting && segment.syn) on_connected(now);
  const u64 in_flight = in_flight_as_told();
  window_end_ = std::max(window_end_, segment.acknowledgement + segment.window);
  if (segment.duplicate) detector_.on_duplicate(segment.acknowledgement, next_);
  Delivered delivered;
  take_blocks(segment, delivered, now);
  take_acknowledgement(segment, delivered, now);
  if (delivered.round_trip) round_trip_.on_sample(*delivered.round_trip);
  count_duplicates(segment, delivered);
  judge_probe(segment, now);
  const bool repairs = state_ == State::kRecovery || state_ == State::kLoss;
  if (repairs && acknowledged_ >= recovery_end_) end_recovery();
  look_for_losses(now);
  // A window that was not used gives no information. Linux: tcp_is_cwnd_limited.
  const u64 window = control_.window();
  const bool was_used = control_.state().in_slow_start() ? in_flight * 2 >= window
                                                         : in_flight + config_.mss >= window;
  control_.on_acknowledged({.bytes = delivered.bytes,
                            .marked_bytes = segment.ece ? delivered.bytes : 0,
                            .up_to = acknowledged_,
                            .sent = next_,
                            .round_trip = round_trip_.smoothed(),
                            .grows = state_ != State::kRecovery && was_used,
                            .may_reduce = state_ == State::kOpen},
                           now);
  if (segment.ece) take_echo(segment, now);
  if (delivered.advanced != 0) {  // RFC 6298, 5.3: bytes beyond a gap do not count
    timeouts_ = 0;
    arm_timeout(now);
  }
  if (delivered.bytes != 0) arm_probe(now);
}

void Sender::on_connected(Time now) {
  state_ = State::kOpen;
  connect_again_ = false;
  timeouts_ = 0;
  if (outstanding_.empty() && counters_.timeouts == 0 && timeout_ != Time::never())
    round_trip_.on_sample(now - (timeout_ - config_.rto_initial));
  timeout_ = Time::never();
}

void Sender::note_received(const SentSegment& segment, Delivered& delivered, Time now) {
  delivered.bytes += segment.bytes;
  detector_.on_received(segment, round_trip_, now);
  if (!segment.sent_again) delivered.round_trip = now - segment.sent;
}

void Sender::take_blocks(const Segment& segment, Delivered& delivered, Time now) {
  if (!config_.sack) return;
  for (u32 i = 0; i < segment.block_count; ++i) {
    const SACKBlock& block = segment.blocks[i];
    for (std::size_t at = outstanding_.at_or_after(block.begin);
         at < outstanding_.size() && outstanding_[at].end() <= block.end; ++at) {
      SentSegment& sent = outstanding_[at];
      if (sent.received) continue;
      note_received(sent, delivered, now);
      if (sent.lost) --lost_;
      outstanding_.mark_received(sent);
    }
  }
}

void Sender::take_acknowledgement(const Segment& segment, Delivered& delivered, Time now) {
  if (segment.acknowledgement > next_ || segment.acknowledgement <= acknowledged_) return;
  delivered.advanced = segment.acknowledgement - acknowledged_;
  acknowledged_ = segment.acknowledgement;
  while (!outstanding_.empty() && outstanding_.front().end() <= acknowledged_) {
    SentSegment& sent = outstanding_.front();
    if (!sent.received) note_received(sent, delivered, now);
    if (sent.lost) --lost_;
    outstanding_.pop_front();
  }
}

// Without SACK each duplicate means that one more segment has arrived. RFC 5681, 2 and 3.2.
void Sender::count_duplicates(const Segment& segment, const Delivered& delivered) {
  if (config_.sack) return;
  if (delivered.advanced != 0) return repair_partially(delivered);
  if (segment.acknowledgement != acknowledged_ || outstanding_.empty() || state_ == State::kLoss)
    return;
  duplicates_ = static_cast<u32>(std::min<u64>(duplicates_ + 1, outstanding_.size()));
}

// RFC 6582, 3.2, step 3: a partial acknowledgement of the window that had a loss reveals the next
// loss.
void Sender::repair_partially(const Delivered& delivered) {
  const u64 others = (delivered.advanced - 1) / config_.mss;  // than the one that was missing
  duplicates_ -= static_cast<u32>(std::min<u64>(duplicates_, others));
  if (state_ == State::kOpen || acknowledged_ >= recovery_end_) duplicates_ = 0;
  if (state_ != State::kRecovery || acknowledged_ >= recovery_end_ || outstanding_.empty()) return;
  if (!outstanding_.front().sent_again) mark_lost(outstanding_.front());
}

u64 Sender::in_flight_as_told() const {
  const u64 arrived = u64{duplicates_} * config_.mss;
  return outstanding_.in_flight() - std::min(outstanding_.in_flight(), arrived);
}

// --- losses

void Sender::mark_lost(SentSegment& segment) {
  if (segment.lost) return;
  outstanding_.mark_lost(segment);
  ++lost_;
  look_for_lost_from_ = std::min(look_for_lost_from_, segment.begin);
}

void Sender::look_for_losses(Time now) {
  const u64 before = lost_;
  using Repairing = LossDetector::Repairing;
  const LossDetector::Losses found =
      detector_.detect(outstanding_, round_trip_,
                       state_ == State::kRecovery ? Repairing::kLoss : Repairing::kNothing, now);
  look_for_lost_from_ = std::min(look_for_lost_from_, found.lowest);
  lost_ += found.count;
  if (!config_.sack && state_ == State::kOpen && duplicates_ >= LossDetector::kDuplicates)
    mark_lost(outstanding_.front());
  if (lost_ > before && state_ == State::kOpen) begin_recovery(now);
}

void Sender::begin_recovery(Time now) {
  state_ = State::kRecovery;
  recovery_end_ = next_;
  may_send_one_ = true;  // RFC 6675, 5, step 4.3: whatever is in flight
  ++counters_.recoveries;
  control_.on_congestion(next_ - acknowledged_ - outstanding_.received_bytes(), now);
  owes_cwr_ = config_.ecn;
  reduced_until_ = next_;
  probe_ = Time::never();
  probe_end_ = 0;
}

void Sender::end_recovery() {
  state_ = State::kOpen;
  duplicates_ = 0;
  detector_.on_recovered();
}

// RFC 8985, 7.4: a probe that the receiver did not have before has repaired a loss, which counts as
// one.
void Sender::judge_probe(const Segment& segment, Time now) {
  if (probe_end_ == 0 || acknowledged_ < probe_end_) return;
  probe_end_ = 0;
  if (probe_is_new_ || segment.duplicate || state_ != State::kOpen) return;
  control_.on_congestion(control_.window(), now);
}

// RFC 3168, 6.1.2: once in a window.
void Sender::take_echo(const Segment& segment, Time now) {
  if (!config_.ecn || state_ != State::kOpen || segment.acknowledgement < reduced_until_) return;
  if (!control_.on_echo(in_flight_as_told(), now)) return;
  ++counters_.echoes;
  owes_cwr_ = true;
  reduced_until_ = next_;
}

// --- timers

Time Sender::next_timer() const { return std::min({timeout_, probe_, detector_.next_timer()}); }

void Sender::arm_timeout(Time now) {
  if (outstanding_.empty() && written_ == next_) {
    timeout_ = Time::never();
    return;
  }
  Duration wait = round_trip_.timeout(config_.rto_initial, config_.rto_min, config_.rto_max);
  for (u32 i = 0; i < std::min(timeouts_, kMostBackingOff) && wait < config_.rto_max; ++i)
    wait = wait * 2;  // RFC 6298, 5.5
  timeout_ = now + std::min(wait, config_.rto_max);
}

// RFC 8985, 7.2: while nothing is wrong and no probe is in flight.
void Sender::arm_probe(Time now) {
  probe_ = Time::never();
  if (!config_.detects_by_time() || state_ != State::kOpen || probe_end_ != 0 ||
      outstanding_.empty() || outstanding_.received_bytes() != 0)
    return;
  Duration wait = round_trip_.has_sample() ? round_trip_.smoothed() * 2 : config_.rto_initial;
  if (outstanding_.size() == 1) wait = wait + config_.ack_delay;
  if (now + wait < timeout_) probe_ = now + wait;
}

void Sender::on_timer(Time now) {
  if (now >= detector_.next_timer()) look_for_losses(now);
  if (now >= probe_) on_probe_timer(now);
  if (now >= timeout_) on_timeout(now);
}

void Sender::on_probe_timer(Time now) {
  probe_ = Time::never();
  if (outstanding_.empty()) return;
  ++counters_.probes;
  probe_is_new_ = next_length() != 0 && next_ + next_length() <= window_end_;
  if (probe_is_new_) {
    may_send_one_ = true;
    probe_end_ = next_ + next_length();
  } else {
    mark_lost(outstanding_.back());
    may_send_one_ = true;
    probe_end_ = outstanding_.back().end();
  }
  arm_timeout(now);
}

// RFC 6298, 5.4 to 5.7; RFC 5681, 3.1. If nothing is outstanding, the window is closed, and a
// segment probes it (RFC 9293, 3.8.6.1).
void Sender::on_timeout(Time now) {
  if (++timeouts_ > config_.retries) {
    failed_ = true;
    timeout_ = Time::never();
    return;
  }
  if (state_ == State::kConnecting) {
    connect_again_ = true;
    ++counters_.timeouts;
    return arm_timeout(now);
  }
  if (!outstanding_.empty()) {
    ++counters_.timeouts;
    // 5681, 3.1: a second timeout of the same bytes leaves the threshold as it is.
    if (timeouts_ == 1) control_.on_timeout(next_ - acknowledged_, now);
    for (std::size_t i = 0; i < outstanding_.size(); ++i)
      if (!outstanding_[i].received) mark_lost(outstanding_[i]);
    state_ = State::kLoss;
    recovery_end_ = reduced_until_ = next_;
    duplicates_ = 0;
    probe_end_ = 0;
    probe_ = Time::never();
  }
  may_send_one_ = true;
  arm_timeout(now);
}

// --- output

bool Sender::poll_segment(Time now, Segment& out) {
  if (failed_) return false;
  out = {};
  if (state_ == State::kConnecting) return poll_connecting(now, out);
  return poll_lost(now, out) || poll_new(now, out);
}

bool Sender::poll_connecting(Time now, Segment& out) {
  if (written_ == 0 || !std::exchange(connect_again_, false)) return false;
  out.syn = true;
  if (timeout_ == Time::never()) arm_timeout(now);
  return true;
}

void Sender::fill(const SentSegment& segment, Segment& out) const {
  out.sequence = segment.begin;
  out.bytes = segment.bytes;
  out.push = segment.push;
  out.word = segment.word;
}

// The lowest first. Not ECT: RFC 3168, 6.1.5.
bool Sender::poll_lost(Time now, Segment& out) {
  if (lost_ == 0) return false;
  if (!may_send_one_ && in_flight_as_told() + config_.mss > control_.window()) return false;
  std::size_t i = outstanding_.at_or_after(look_for_lost_from_);
  while (i < outstanding_.size() && !outstanding_[i].lost) ++i;
  CHECK(i < outstanding_.size());
  look_for_lost_from_ = outstanding_[i].end();
  send_again(outstanding_[i], now, out);
  return true;
}

void Sender::send_again(SentSegment& segment, Time now, Segment& out) {
  --lost_;
  may_send_one_ = false;
  outstanding_.mark_sent_again(segment, now);
  detector_.on_sent_again(segment);
  fill(segment, out);
  ++counters_.segments;
  ++counters_.retransmissions;
  arm_timeout(now);
}

// Returns 0 if there is nothing to send.
u32 Sender::next_length() const {
  if (messages_.empty()) return 0;
  return static_cast<u32>(std::min<u64>(config_.mss, messages_.front().end - next_));
}

bool Sender::poll_new(Time now, Segment& out) {
  const u32 length = next_length();
  if (length == 0) return false;
  // RFC 3042: the first two duplicates allow new segments, which in_flight_as_told() includes.
  const bool fits = next_ + length <= window_end_ &&
                    in_flight_as_told() + length <= std::max<u64>(control_.window(), length);
  if (!fits && !may_send_one_) {
    if (outstanding_.empty() && timeout_ == Time::never()) arm_timeout(now);
    return false;
  }
  may_send_one_ = false;
  SentSegment segment{.begin = next_, .sent = now, .bytes = length};
  next_ += length;
  if (next_ == messages_.front().end) {
    segment.push = true;
    segment.word = messages_.front().word;
    messages_.pop_front();
  }
  if (std::exchange(owes_cwr_, false)) out.cwr = true;
  out.ecn = config_.ecn ? ECN::kECT0 : ECN::kNotECT;
  outstanding_.add(segment);
  fill(segment, out);
  ++counters_.segments;
  if (timeout_ == Time::never() || outstanding_.size() == 1) arm_timeout(now);
  arm_probe(now);
  return true;
}

}  // namespace verbena::tcp
