// SentFrame: a frame that a port was asked to keep a copy of when it sent it.
#pragma once

#include "base/time.h"
#include "fabric/frame.h"

namespace verbena::fabric {

struct SentFrame {
  Time at;  // its first bit
  u32 node = 0, port = 0;
  Frame frame;
};

}  // namespace verbena::fabric
