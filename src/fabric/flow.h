// Flow: one message from a host to another, by RDMA WRITE on an RC QP of its own.
#pragma once

#include "base/time.h"
#include "fabric/topology.h"

namespace verbena::fabric {

struct Flow {
  NodeIndex source = 0, destination = 0;
  u64 bytes = 0;
  Time start{};
  u8 priority = 3;  // of its data
  u16 source_port = 0,
      destination_port = 0;  // UDP, for ECMP and results; 0: as the device has them
};

// A pair of RC QPs that stays, for an Application's messages: RDMA WRITEs with immediate data.
struct ConnectionConfig {
  static constexpr u32 kMaxMessageBytes = 1u << 30;

  NodeIndex source = 0, destination = 0;
  u32 depth = 32;                             // messages under way, at most
  u8 priority = 3;                            // of its data
  u16 source_port = 0, destination_port = 0;  // as a flow's
};

}  // namespace verbena::fabric
