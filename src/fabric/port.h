// Port: one end of a link, and how it sends. A frame is one event: its arrival at the other end. A
// port that is busy is woken when it is free, but only where something waits for that.
#pragma once

#include <algorithm>
#include <vector>

#include "fabric/domain.h"
#include "fabric/link.h"

namespace verbena::fabric {

// TransmissionTimes: how long a frame of each size takes at one rate, with the gap before it.
class TransmissionTimes {
 public:
  static constexpr u32 kMaxBytes = 9728;  // a jumbo frame of 9216 bytes with all its headers
  TransmissionTimes(Rate rate, Clock clock, u32 gap_bytes) : times_(kMaxBytes + 1) {
    for (u32 bytes = 0; bytes <= kMaxBytes; ++bytes)
      times_[bytes] = transmission_time(rate, bytes + gap_bytes, clock);
  }
  [[nodiscard]] const Duration* data() const { return times_.data(); }

 private:
  std::vector<Duration> times_;
};

struct alignas(64) Port {
  const Duration* times = nullptr;  // by size
  Duration delay;
  Time free_at;        // the frame being sent is out
  Time busy_since;     // it has sent without a pause
  u32 peer = 0;        // the port at the other end
  NodeIndex node = 0;  // that it belongs to
  u16 number = 0;      // among the node's
  u16 peer_domain = 0;
  bool wake_pending = false;
  bool up = true;       // its link
  bool tapped = false;  // what it sends is kept
  u16 last_bytes = 0;   // of the frame sent last
  u16 head_bytes = 0;   // the other end may go on with so much of a frame; 0: with all of it
  u32 latency_ps = 0;   // of the other end, before it has a frame in a queue
  Duration busy;        // it has been sending: all frames, that on the wire included
  Rate rate;
  float error_rate = 0;

  // Nothing is being sent, and nothing has waited for longer.
  [[nodiscard]] bool is_free(Time now) const { return now >= free_at && !wake_pending; }
  // Returns for how long it has been sending until `at`; never more than `at`. Exact if it has sent
  // nothing since; else less, by the gaps since then.
  [[nodiscard]] Duration busy_time(Time at) const {
    return std::max(busy - std::max(free_at - at, Duration()), Duration());
  }
  // Returns how many bytes of the frame on the wire are not out at `at`, each begun one included.
  // The gap comes first.
  [[nodiscard]] u64 bytes_to_send(Time at) const {
    constexpr u64 kByte = u64{8} * 1'000'000'000'000;  // bits, and picoseconds of a second
    if (free_at <= at) return 0;
    const u64 left = (static_cast<u64>((free_at - at).ps()) * rate.bps() + kByte - 1) / kByte;
    return std::min<u64>(left, last_bytes);
  }
};

[[nodiscard]] inline LinkConfig link_of(const Port& port) {
  return {.rate = port.rate, .delay = port.delay, .error_rate = port.error_rate};
}

// ArrivalRank: the order of frames that arrive at the same time. The frame that was sent first
// comes first. Of frames sent at the same time, the one whose cause was known first comes first, as
// if the path of each frame had been simulated event by event. A port that was idle sends because
// of an event that was known for `since` (a frame was on its way, a wait had begun). A busy port
// sends because its last frame is out, which was known since that frame began. Among busy ports,
// the one that was idle last comes first: it came first then, too. Causes are compared with ns-3's
// clock alone (Network::known_since()): elsewhere all idle ports are equal. In 64 bits: 29 for the
// path (0.5 ms), and 35 in three parts for the rest.
class ArrivalRank {
 public:
  // Returns less than a nanosecond, the more the longer the present event was known: the event
  // counts as so much earlier, where its consequences are compared. With ns-3's clock that settles
  // equal times.
  [[nodiscard]] static Duration seniority(Duration since) {
    return ps(std::min<i64>(since.ps() >> 13, 999));  // of 8 ns each
  }

  static constexpr Duration kLongest = Duration::from_ps((i64{1} << 33) - 1);  // of `since`: 8.6 ms

  [[nodiscard]] static u64 of(const Port& port, Time now, Duration since) {
    const Duration sending = port.free_at - now;
    const u64 way = static_cast<u64>((sending + port.delay).ps());
    const bool was_idle = now <= port.busy_since;
    return (kLongestWay - std::min(way, kLongestWay)) << kCauseBits |
           (was_idle ? of_idle(since, sending) : of_busy(now - port.busy_since));
  }
  [[nodiscard]] static Duration way_of(u64 rank) {
    return Duration::from_ps(static_cast<i64>(kLongestWay - (rank >> kCauseBits)));
  }

 private:
  static constexpr u32 kCauseBits = 35;
  static constexpr u64 kLongestWay = (u64{1} << (64 - kCauseBits)) - 1;
  static constexpr u64 kFirstBusy = u64{1} << 33, kLongestBusy = (u64{1} << 34) - 1,
                       kFirstLate = kFirstBusy + kLongestBusy + 1;

  static u64 of_idle(Duration since, Duration sending) {
    const u64 known = static_cast<u64>(std::min(since, kLongest).ps());
    return (since < sending ? kFirstLate : 0) + (kFirstBusy - 1 - known);
  }
  static u64 of_busy(Duration busy) {
    return kFirstBusy + std::min(static_cast<u64>(busy.ps()), kLongestBusy);
  }
};

// Switches do not forward pause frames, which belong to the MAC, nor flow control packets.
[[nodiscard]] inline Time time_of_arrival(const Port& port, Frame& frame, Time now) {
  const bool by_head = port.head_bytes != 0 && frame.size_bytes > port.head_bytes;
  frame.extent = by_head ? Extent::kHead : Extent::kWhole;
  if ((port.head_bytes | port.latency_ps) == 0 || frame.is_for_a_neighbour())
    return port.free_at + port.delay;
  return (by_head ? now + port.times[port.head_bytes] : port.free_at) + port.delay +
         ps(port.latency_ps);
}

// Keeps a copy of the frame. Few ports do: a separate function, so that others need no stack for
// it.
[[gnu::noinline, gnu::cold]] inline void tap(Domain& domain, const Port& port, const Frame& frame) {
  domain.tapped.push_back({domain.now, port.node, port.number, frame});
}

// Puts a frame on the wire. Precondition: now >= port.free_at.
inline void send(Domain& domain, Port& port, FrameIndex index) {
  Frame& frame = domain.frames[index];
  if (domain.now != port.free_at)
    port.busy_since = domain.now + ArrivalRank::seniority(domain.known_since);
  const Duration sending = port.times[frame.size_bytes];
  port.free_at = domain.now + sending;
  port.busy = port.busy + sending;
  port.last_bytes = frame.size_bytes;
  if (port.tapped) [[unlikely]]
    tap(domain, port, frame);
  ++domain.counters.hops;
  domain.counters.data_hops += frame.size_bytes > Counters::kSmallFrame ? 1 : 0;
  domain.counters.wire_bytes += frame.size_bytes;
  const Event arrival(time_of_arrival(port, frame, domain.now), EventKind::kArrival, port.peer,
                      index, ArrivalRank::of(port, domain.now, domain.known_since));
  if (port.peer_domain == domain.number)
    domain.events.add_at_neighbour(arrival);
  else
    domain.hand_over(port.peer_domain, arrival);
}

// Has the port woken at `at`, or when it is free if that is later. `place`: its number of all.
inline void wake_when_free(Domain& domain, Port& port, u32 place) {
  if (port.wake_pending) return;
  port.wake_pending = true;
  domain.events.add({std::max(port.free_at, domain.now), EventKind::kPortWake, place});
}

}  // namespace verbena::fabric
