// LivePacket: a packet of a live process on its way through a simulated network, with its bytes.
// In the network it is a Frame of FrameType::kLive; its bytes lie beside the frame in the
// FramePool, and switches look at no more of them than a frame's headers have.
#pragma once

#include <vector>

#include "base/time.h"
#include "base/types.h"

namespace verbena::fabric {

struct LivePacket {
  enum class Kind : u8 {
    kData,  // a request or a response with data: waits for pauses, and in the NIC's queue
    kAcknowledgement,  // goes before data
    kNotification,     // CNP: likewise, in a priority of its own
  };

  u32 source = 0, destination = 0;  // hosts
  u32 owner = 0;                    // the process that has sent it, as the driver numbers them
  u16 udp_source_port = 0;
  u8 traffic_class = 0;  // DSCP and ECN; at arrival as the switches have left it
  u8 hop_limit = 0;
  u8 priority = 0;
  Kind kind = Kind::kData;
  u16 slid = 0, dlid = 0;  // on InfiniBand, where `priority` is the lane
  bool by_host = false;    // likewise: its ends know each other by host and not by LID
  Time given, arrived;     // to the source's NIC; at the destination
  std::vector<u8> bytes;   // BTH .. ICRC
};

// LeftPacket: data that has left the NIC, which has room for as much again.
struct LeftPacket {
  u32 owner = 0;
  u32 bytes = 0;  // of LivePacket::bytes
};

}  // namespace verbena::fabric
