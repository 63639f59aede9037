// Flow: one message from a host to another, by RDMA WRITE on an RC QP of its own.
#pragma once

#include "base/time.h"
#include "fabric/topology.h"

namespace verbena::fabric {

struct Flow {
  NodeIndex source = 0, destination = 0;
  u64 octets = 0;
  Time start{};
  u8 priority = 3;  // of its data
  u16 source_port = 0,
      destination_port = 0;  // UDP, for ECMP and results; 0: as the device has them
};

}  // namespace verbena::fabric
