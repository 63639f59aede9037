// RCLimits: what the driver's path can hold, for one RC QP.
#pragma once

#include <optional>

#include "base/time.h"
#include "wire/ib/mtu.h"

namespace verbena {

struct RCLimits {
  u32 packet_size(MTU path_mtu) const {
    return packet_octets != 0 ? packet_octets : bytes(path_mtu);
  }

  u32 window_packets = 1024;  // PSNs sent and not yet acknowledged, READ responses included
  u32 window_bytes = 1u << 20;
  // Octets of payload in a full packet, at both ends; 0: the path MTU. For simulations of networks
  // whose packets have a size that no path MTU has.
  u32 packet_octets = 0;
  u32 ack_interval = 32;  // packets between two requests for an ACK in a long run; 1: each asks
  Duration min_ack_timeout{};                   // floor under the Local ACK Timeout
  std::optional<Duration> min_probe_timeout{};  // nullopt: no probes. See probe_timer.h
  u8 max_rd_atomic = 16;                        // responder resources kept, at most
};

}  // namespace verbena
