// AckSignals: passes one requester's acknowledgements and losses to its congestion control, and
// returns the resulting window. Round trips are those of packets that were sent once (RFC 6298, 3):
// a send time is kept for each packet in flight. The constructor makes room for at most kFirstRoom
// packets; the room doubles when a larger window needs it, which the windows for sockets never do.
#pragma once

#include <vector>

#include "base/psn.h"
#include "congestion/congestion_control.h"

namespace verbena {

class AckSignals {
 public:
  static constexpr u32 kFirstRoom = 1024;  // packets

  // `window_packets`: no more are ever in flight.
  AckSignals(CongestionControl& control, u32 window_packets);

  struct Sent {
    PSN psn;
    u32 psns;
    u32 in_flight = 0;  // packets before `psn` that are not acknowledged
  };
  // To be called for a packet that was never sent before. Of a READ, whose responses follow each
  // other, only the first packet has a round trip.
  void on_sent(const Sent& sent, Time now);
  void on_resent(PSN psn, u32 psns);

  struct Progress {
    PSN before, unacked;  // the oldest PSN that is not acknowledged, before and now
    u32 in_flight;        // packets
    u32 mtu;              // bytes: a packet that is not full counts as a full one
  };
  void on_acknowledged(const Progress& progress, const PathTelemetry* path, Time now);
  void on_nak(Time now) { control_.on_nak(now); }
  void on_timeout(Time now) { control_.on_timeout(now); }

  // Returns how many packets may be in flight, at least one.
  [[nodiscard]] u32 window_packets(u32 mtu, Time now);

 private:
  Time& sent_at(PSN psn) { return sent_at_[psn.value() & mask_]; }
  void make_room(PSN end, u32 in_flight, u32 needed);

  CongestionControl& control_;
  u32 mask_;
  std::vector<Time> sent_at_;  // by PSN; never(): no send time counts
};

}  // namespace verbena
