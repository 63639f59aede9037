// ReceiverConfig: how fast a host takes the frames that arrive.
#pragma once

#include "base/rate.h"
#include "base/types.h"

namespace verbena::fabric {

// A host that takes what arrives slower than the link brings it: its NIC holds frames back in a
// buffer, and asks for pauses while that is filling. Guo et al., RDMA over Commodity Ethernet at
// Scale, SIGCOMM 2016, 4.4 (slow-receiver symptom).
struct ReceiverConfig {
  Rate drain = Rate::unlimited();                           // of frames as links count them
  u32 buffer_bytes = 1u << 20;                              // the excess is dropped
  u32 pause_above = 512u << 10, resume_below = 256u << 10;  // bytes in the buffer
};

}  // namespace verbena::fabric
