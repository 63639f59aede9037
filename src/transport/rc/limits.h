// RCLimits: what the driver's path can hold, for one RC QP.
#pragma once

#include <optional>

#include "base/time.h"

namespace verbena {

struct RCLimits {
  u32 window_packets = 1024;  // PSNs sent and not yet acknowledged, READ responses included
  u32 window_bytes = 1u << 20;
  Duration min_ack_timeout{};                   // floor under the Local ACK Timeout
  std::optional<Duration> min_probe_timeout{};  // nullopt: no probes. See probe_timer.h
  u8 max_rd_atomic = 16;                        // responder resources kept, at most
};

}  // namespace verbena
