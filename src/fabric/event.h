// Event: what is to happen at a time, in 16 bytes. Events of the same time happen in the order in
// which they were added.
#pragma once

#include "base/time.h"

namespace verbena::fabric {

enum class EventKind : u8 { kFlowStart, kArrival, kPause, kPortWake, kDeviceTimer, kAlarm };

struct Event {
  static constexpr u32 kPlaceBits = 29;

  Time at;
  u32 what = 0;     // kind (3 bits) | place (29): the flow, port or alarm
  u32 subject = 0;  // kArrival: the frame

  constexpr Event() = default;
  constexpr Event(Time when, EventKind kind, u32 place, u32 about = 0)
      : at(when), what(static_cast<u32>(kind) << kPlaceBits | place), subject(about) {}
  constexpr EventKind kind() const { return static_cast<EventKind>(what >> kPlaceBits); }
  constexpr u32 place() const { return what & ((1u << kPlaceBits) - 1); }
};
static_assert(sizeof(Event) == 16);

}  // namespace verbena::fabric
