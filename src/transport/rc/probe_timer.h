// ProbeTimer: when a requester that receives no answer sends its oldest packet again, long before
// its Local ACK Timeout ends. A lost last packet, or its lost ACK, leaves no gap that anybody could
// see.
//   smoothed round trip and its variation   RFC 6298, 2; repeated packets are not measured: 3
//   the probe and its timeout               RFC 9002, 6.2.1; for tails first in RFC 8985, 7
// The wait doubles while the silence lasts, and one silence has at most kMaxProbes probes. The
// transport's own timeout runs beside it and alone decides that the peer is gone.
//
// Drivers whose peers may be descheduled set a minimum. It does not apply to a peer that has just
// answered a probe: if the peer does not also answer the packets sent before the probe, they are
// lost.
#pragma once

#include <optional>

#include "base/psn.h"
#include "base/time.h"

namespace verbena {

class ProbeTimer {
 public:
  static constexpr u32 kMaxProbes = 8;
  static constexpr i64 kUnmeasured = 8;  // minimum timeouts, while no round trip is known
  static constexpr Duration kCeiling = sec(1);

  // There are no probes if `floor` is nullopt.
  explicit ProbeTimer(std::optional<Duration> floor) : floor_(floor) {}

  // --- round trips: one packet at a time is measured
  void on_sent(PSN psn, Time now);  // a packet that was never sent before and will be answered
  void on_resent();
  // Acknowledges all before `unacked`, and ends the silence.
  void on_acknowledged(PSN unacked, Time now) {
    probes_ = 0;
    peer_is_awake_ = false;
    if (!timed_ || !timed_->psn.before(unacked)) return;
    measure(now - timed_->sent);
    timed_.reset();
  }

  // The answer was to the probe alone, not to other packets in flight. Valid until the next
  // progress.
  void on_probe_answered() { peer_is_awake_ = true; }
  [[nodiscard]] bool peer_is_awake() const { return peer_is_awake_; }

  // --- silence
  [[nodiscard]] Time next(Time since) const;  // of the silence since that time; never(): no more
  void on_probe() { ++probes_, on_resent(); }
  [[nodiscard]] Duration timeout() const;  // of the first probe

 private:
  struct Timed {
    PSN psn;
    Time sent;
  };
  void measure(Duration round_trip);

  std::optional<Duration> floor_;
  std::optional<Timed> timed_;
  bool measured_ = false;
  Duration smoothed_, variation_;
  u32 probes_ = 0;  // in this silence
  bool peer_is_awake_ = false;
};

}  // namespace verbena
