// alone_time(): how long a flow takes without other flows, the base of slowdown: from its start to
// the arrival of its last acknowledgement at the sender.
#pragma once

#include "fabric/network.h"

namespace verbena::fabric {

struct PacketSizes {
  u32 payload = 4096;                 // of a full packet
  u32 header = 50 + 12;               // of each frame, with FCS; host.h. With the gap, if any
  u32 first_header = 50 + 12 + 16;    // with the RETH
  u32 acknowledgement = 50 + 12 + 4;  // with the AETH
  u32 gap = 0;                        // of all these: the part that is not bytes of the frame
};

[[nodiscard]] PacketSizes sizes_for(Technology technology, u32 payload);

// Returns the sizes of the packets that hosts of that network send, as time on the wire.
[[nodiscard]] PacketSizes packet_sizes(const NetworkConfig& network, const HostConfig& host);

// All frames over the slowest link of the path, one (or its head, where switches cut through) over
// each other, the acknowledgement back.
[[nodiscard]] Duration alone_time(const Flow& flow, const PacketSizes& sizes,
                                  const Network& network);

}  // namespace verbena::fabric
