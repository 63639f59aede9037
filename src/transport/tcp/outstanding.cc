#include "transport/tcp/outstanding.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbena::tcp {

std::size_t Outstanding::at_or_after(u64 sequence) const {
  const auto at = std::ranges::lower_bound(segments_, sequence, {}, &SentSegment::begin);
  return static_cast<std::size_t>(at - segments_.begin());
}

SentSegment* Outstanding::beginning_at(u64 sequence) {
  const std::size_t at = at_or_after(sequence);
  return at < size() && segments_[at].begin == sequence ? &segments_[at] : nullptr;
}

void Outstanding::add(const SentSegment& segment) {
  CHECK(segment.in_flight && (empty() || back().end() == segment.begin));
  segments_.push_back(segment);
  in_flight_ += segment.bytes;
}

void Outstanding::land(SentSegment& segment) {
  if (std::exchange(segment.in_flight, false)) in_flight_ -= segment.bytes;
}

void Outstanding::pop_front() {
  land(front());
  if (front().received) received_bytes_ -= front().bytes;
  segments_.pop_front();
}

void Outstanding::mark_received(SentSegment& segment) {
  CHECK(!segment.received);
  land(segment);
  segment.lost = false;
  segment.received = true;
  received_bytes_ += segment.bytes;
}

void Outstanding::mark_lost(SentSegment& segment) {
  land(segment);
  segment.lost = true;
}

void Outstanding::mark_sent_again(SentSegment& segment, Time now) {
  if (!std::exchange(segment.in_flight, true)) in_flight_ += segment.bytes;
  segment.lost = false;
  segment.sent_again = true;
  segment.sent = now;
}

}  // namespace verbena::tcp
