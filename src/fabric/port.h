// Port: one end of a link, and how it sends. A frame is one event: its arrival at the other end. A
// port that is busy is woken when it is free, but only where something waits for that.
#pragma once

#include <algorithm>
#include <vector>

#include "fabric/domain.h"
#include "fabric/link.h"

namespace verbena::fabric {

// How long a frame of each size takes at one rate.
class TransmissionTimes {
 public:
  static constexpr u32 kMaxOctets = 9728;  // a jumbo frame of 9216 octets with all its headers
  TransmissionTimes(Rate rate, Clock clock) : times_(kMaxOctets + 1) {
    for (u32 octets = 0; octets <= kMaxOctets; ++octets)
      times_[octets] = transmission_time(rate, octets, clock);
  }
  [[nodiscard]] const Duration* data() const { return times_.data(); }

 private:
  std::vector<Duration> times_;
};

struct Port {
  const Duration* times = nullptr;  // by size
  Duration delay;
  Time free_at;        // the frame being sent is out
  u32 peer = 0;        // the port at the other end
  NodeIndex node = 0;  // that it belongs to
  u32 number = 0;      // among the node's
  bool wake_pending = false;
  Rate rate;
  double error_rate = 0;

  // Nothing is being sent, and nothing has waited for longer.
  [[nodiscard]] bool is_free(Time now) const { return now >= free_at && !wake_pending; }
};

// Puts a frame on the wire. Precondition: now >= port.free_at.
inline void send(Domain& domain, Port& port, FrameIndex index) {
  const Frame& frame = domain.frames[index];
  port.free_at = domain.now + port.times[frame.size_octets];
  domain.events.add({port.free_at + port.delay, EventKind::kArrival, port.peer, index});
  ++domain.counters.hops;
  domain.counters.data_hops += frame.size_octets > Counters::kSmallFrame ? 1 : 0;
  domain.counters.wire_octets += frame.size_octets;
}

// Has the port woken at `at`, or when it is free if that is later. `place`: its number of all.
inline void wake_when_free(Domain& domain, Port& port, u32 place) {
  if (port.wake_pending) return;
  port.wake_pending = true;
  domain.events.add({std::max(port.free_at, domain.now), EventKind::kPortWake, place});
}

}  // namespace verbena::fabric
