// The frame that asks a neighbour to pause a priority, or to go on. IEEE 802.1Q, 36.1.
#pragma once

#include "fabric/frame_pool.h"
#include "fabric/trace.h"

namespace verbena::fabric {

// Counted. Quanta 0: to go on.
[[nodiscard]] inline FrameIndex make_pause(FramePool& frames, Counters& counters, u32 priority,
                                           u16 quanta, u16 frame_bytes) {
  const FrameIndex index = frames.take();
  Frame& frame = frames[index];
  frame.type = FrameType::kPause;
  frame.priority = static_cast<u8>(priority);
  frame.pause_quanta = quanta;
  frame.size_bytes = frame_bytes;
  frame.payload_bytes = 0;
  ++(quanta != 0 ? counters.pauses : counters.resumes);
  return index;
}

}  // namespace verbena::fabric
