// Outstanding: the segments that were sent and not acknowledged in full, in the order of the
// stream, with the state of each. RFC 6675, 2 (scoreboard) and 4 (SetPipe).
//
// Invariant: in_flight() is the sum of the segments that are marked as in flight: sent, or sent
// again, and since then neither received nor considered lost.
#pragma once

#include <deque>

#include "base/time.h"
#include "transport/tcp/segment.h"

namespace verbena::tcp {

struct SentSegment {
  u64 begin = 0;
  Time sent;  // last
  u32 bytes = 0;
  u32 word = 0;
  bool push = false, cwr = false;
  bool in_flight = true, received = false, lost = false;
  bool sent_again = false;  // ever

  [[nodiscard]] u64 end() const { return begin + bytes; }
};

class Outstanding {
 public:
  [[nodiscard]] bool empty() const { return segments_.empty(); }
  [[nodiscard]] u64 in_flight() const { return in_flight_; }
  [[nodiscard]] u64 received_bytes() const { return received_bytes_; }  // beyond a gap
  [[nodiscard]] SentSegment& front() { return segments_.front(); }
  [[nodiscard]] SentSegment& back() { return segments_.back(); }
  [[nodiscard]] std::size_t size() const { return segments_.size(); }
  [[nodiscard]] SentSegment& operator[](std::size_t i) { return segments_[i]; }
  // Returns the place of the first segment that begins at `sequence` or later.
  [[nodiscard]] std::size_t at_or_after(u64 sequence) const;
  // Returns nullptr if none begins there.
  [[nodiscard]] SentSegment* beginning_at(u64 sequence);

  void add(const SentSegment& segment);
  void pop_front();
  void mark_received(SentSegment& segment);
  void mark_lost(SentSegment& segment);
  void mark_sent_again(SentSegment& segment, Time now);

 private:
  void land(SentSegment& segment);

  std::deque<SentSegment> segments_;
  u64 in_flight_ = 0, received_bytes_ = 0;
};

}  // namespace verbena::tcp
