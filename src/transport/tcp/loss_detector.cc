#include "transport/tcp/loss_detector.h"

#include <algorithm>

namespace verbena::tcp {
namespace {

constexpr u32 kPersistence = 16;  // recoveries. RFC 8985, 6.2, step 4
constexpr u32 kMostParts = 20;

void note_lost(Outstanding& segments, SentSegment& segment, LossDetector::Losses& losses) {
  segments.mark_lost(segment);
  ++losses.count;
  losses.lowest = std::min(losses.lowest, segment.begin);
}

}  // namespace

void LossDetector::on_sent_again(const SentSegment& segment) {
  if (config_.detects_by_time()) again_.push_back({segment.begin, segment.sent});
}

// RFC 8985, 6.2, steps 1 to 3.
void LossDetector::on_received(const SentSegment& segment, const RoundTrip& round_trip, Time now) {
  if (segment.end() < highest_received_ && !segment.sent_again) reordering_ = true;
  highest_received_ = std::max(highest_received_, segment.end());
  const Duration took = now - segment.sent;
  // It answers the first transmission. Step 2 says "least", but of two segments that are
  // acknowledged together the first takes longer than one alone.
  if (segment.sent_again && took < round_trip.least() / 2) return;
  if (segment.sent < sent_ || (segment.sent == sent_ && segment.end() <= end_)) return;
  sent_ = segment.sent;
  end_ = segment.end();
  round_trip_ = took;
}

void LossDetector::on_duplicate(u64 acknowledged, u64 sent) {
  if (acknowledged < duplicate_until_) return;
  duplicate_until_ = sent;
  window_parts_ = std::min(window_parts_ + 1, kMostParts);
  window_persists_ = kPersistence;
}

void LossDetector::on_recovered() {
  if (window_persists_ == 0 || --window_persists_ != 0) return;
  window_parts_ = 1;
}

// RFC 8985, 6.2, step 4.
Duration LossDetector::window(const Outstanding& segments, const RoundTrip& round_trip,
                              Repairing repairing) const {
  if (!reordering_ && (repairing == Repairing::kLoss ||
                       segments.received_bytes() >= u64{kDuplicates} * config_.mss))
    return {};
  return std::min(round_trip.least() * window_parts_ / 4, round_trip.smoothed());
}

LossDetector::Losses LossDetector::detect(Outstanding& segments, const RoundTrip& round_trip,
                                          Repairing repairing, Time now) {
  timer_ = Time::never();
  Losses losses;
  if (!config_.sack || segments.empty()) return losses;
  if (!config_.rack) {
    detect_by_count(segments, losses);
    return losses;
  }
  const Duration wait = window(segments, round_trip, repairing);
  detect_by_time(segments, wait, now, losses);
  detect_again(segments, wait, now, losses);
  return losses;
}

bool LossDetector::was_sent_before(const SentSegment& segment) const {
  return segment.sent < sent_ || (segment.sent == sent_ && segment.end() < end_);
}

// Step 5, for a segment that is neither received nor lost.
bool LossDetector::is_overdue(const SentSegment& segment, Duration window, Time now) {
  const Time due = segment.sent + round_trip_ + window;
  if (due <= now) return true;
  timer_ = std::min(timer_, due);
  return false;
}

// Segments that were sent once are ordered by time: only the first are checked.
void LossDetector::detect_by_time(Outstanding& segments, Duration window, Time now,
                                  Losses& losses) {
  for (std::size_t i = segments.at_or_after(looked_at_); i < segments.size(); ++i) {
    SentSegment& segment = segments[i];
    if (!segment.received && !segment.lost && !segment.sent_again) {
      if (!was_sent_before(segment) || !is_overdue(segment, window, now)) return;
      note_lost(segments, segment, losses);
    }
    looked_at_ = segment.end();
  }
}

// So are segments that were sent again.
void LossDetector::detect_again(Outstanding& segments, Duration window, Time now, Losses& losses) {
  for (; !again_.empty(); again_.pop_front()) {
    SentSegment* const segment = segments.beginning_at(again_.front().begin);
    if (segment == nullptr || segment->received || segment->lost ||
        segment->sent != again_.front().sent)
      continue;
    if (!was_sent_before(*segment) || !is_overdue(*segment, window, now)) return;
    note_lost(segments, *segment, losses);
  }
}

// From the last one received back to the point beyond which enough has been received.
void LossDetector::detect_by_count(Outstanding& segments, Losses& losses) {
  const u64 enough = u64{kDuplicates - 1} * config_.mss;
  if (segments.received_bytes() <= enough) return;
  u64 beyond = 0;
  std::size_t i = segments.at_or_after(highest_received_);
  while (i != 0 && segments[i - 1].begin >= looked_at_ && beyond <= enough) {
    --i;
    if (segments[i].received) beyond += segments[i].bytes;
  }
  if (beyond <= enough) return;
  const u64 until = segments[i].begin;
  for (i = segments.at_or_after(looked_at_); i < segments.size() && segments[i].begin < until;
       ++i) {
    SentSegment& segment = segments[i];
    if (!segment.received && !segment.lost && !segment.sent_again)
      note_lost(segments, segment, losses);
  }
  looked_at_ = std::max(looked_at_, until);
}

}  // namespace verbena::tcp
