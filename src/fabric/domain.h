// Domain: the part of a network that one thread simulates: its events, its frames and what it has
// counted. Nothing in it is shared with another domain.
#pragma once

#include "fabric/event_queue.h"
#include "fabric/frame_pool.h"
#include "fabric/trace.h"

namespace verbena::fabric {

struct Domain {
  explicit Domain(Duration day) : events(day) {}

  EventQueue events;
  FramePool frames;
  Time now;
  Counters counters;
  Trace* trace = nullptr;
};

}  // namespace verbena::fabric
