// Event: what is to happen at a time, in 24 bytes. Events of one node happen in the order of their
// times; those of the same time in that of their kinds, as they are listed, then of `rank`, then of
// their places; those in which all of that is equal, in the order in which they were added. So the
// order does not depend on when other nodes' events are simulated.
#pragma once

#include "base/time.h"

namespace verbena::fabric {

enum class EventKind : u8 { kFlowStart, kArrival, kPause, kPortWake, kDeviceTimer, kAlarm };

struct Event {
  static constexpr u32 kPlaceBits = 29;

  Time at;
  u32 what = 0;     // kind (3 bits) | place (29): the port, of all
  u32 subject = 0;  // kArrival: the frame; kFlowStart: the flow; kAlarm: its word
  u64 rank = 0;     // kArrival: see port.h; others: the subject

  constexpr Event() = default;
  constexpr Event(Time when, EventKind kind, u32 place, u32 about = 0, u64 its_rank = 0)
      : at(when),
        what(static_cast<u32>(kind) << kPlaceBits | place),
        subject(about),
        rank(its_rank) {}
  constexpr EventKind kind() const { return static_cast<EventKind>(what >> kPlaceBits); }
  constexpr u32 place() const { return what & ((1u << kPlaceBits) - 1); }
};
static_assert(sizeof(Event) == 24);

}  // namespace verbena::fabric
