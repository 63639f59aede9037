// LossDetector: decides which outstanding segments count as lost:
//   by time   RACK, RFC 8985: sent sufficiently long before one that has been received. Finds lost
//             retransmissions too, and waits a quarter of the round trip if the network is seen
//             to reorder;
//   by count  RFC 6675, IsLost(): more than two segments' bytes beyond it have been received.
// Without SACK neither applies: the sender counts duplicates (RFC 6582).
#pragma once

#include <deque>

#include "transport/tcp/config.h"
#include "transport/tcp/outstanding.h"
#include "transport/tcp/round_trip.h"

namespace verbena::tcp {

class LossDetector {
 public:
  static constexpr u32 kDuplicates = 3;  // DupThresh

  explicit LossDetector(const Config& config) : config_(config) {}

  void on_sent_again(const SentSegment& segment);
  // Acknowledged, or named in a SACK block.
  void on_received(const SentSegment& segment, const RoundTrip& round_trip, Time now);
  // The receiver had the segment before (D-SACK), so it was not lost. Once in a round trip.
  void on_duplicate(u64 acknowledged, u64 sent);
  void on_recovered();
  struct Losses {
    u32 count = 0;
    u64 lowest = ~u64{0};  // the begin of the first of them
  };
  enum class Repairing : u8 { kNothing, kLoss };
  // Marks segments as lost. `repairing`: losses were found before.
  [[nodiscard]] Losses detect(Outstanding& segments, const RoundTrip& round_trip,
                              Repairing repairing, Time now);
  // By time: when the next segment counts as lost, if nothing arrives before.
  [[nodiscard]] Time next_timer() const { return timer_; }
  [[nodiscard]] bool has_seen_reordering() const { return reordering_; }

 private:
  struct Again {
    u64 begin;
    Time sent;
  };

  [[nodiscard]] Duration window(const Outstanding& segments, const RoundTrip& round_trip,
                                Repairing repairing) const;
  void detect_by_time(Outstanding& segments, Duration window, Time now, Losses& losses);
  void detect_again(Outstanding& segments, Duration window, Time now, Losses& losses);
  void detect_by_count(Outstanding& segments, Losses& losses);
  [[nodiscard]] bool was_sent_before(const SentSegment& segment) const;
  [[nodiscard]] bool is_overdue(const SentSegment& segment, Duration window, Time now);

  const Config& config_;
  // RFC 8985, 5.2: of the segment sent last among those received.
  Time sent_;
  u64 end_ = 0;
  Duration round_trip_{};
  u64 highest_received_ = 0;  // RACK.fack
  bool reordering_ = false;
  u32 window_parts_ = 1;     // of a quarter of the round trip: RACK.reo_wnd_mult
  u32 window_persists_ = 0;  // recoveries
  u64 duplicate_until_ = 0;  // RACK.dsack_round
  u64 looked_at_ = 0;        // segments below, sent once, are lost or received
  std::deque<Again> again_;  // in the order of time
  Time timer_ = Time::never();
};

}  // namespace verbena::tcp
