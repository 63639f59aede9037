// In-band telemetry (INT), which HPCC uses: each switch on the path of a data frame notes in it
// what its port has sent and holds, and the acknowledgement takes the notes back.
// The P4.org Applications Working Group, In-band Network Telemetry Dataplane Specification 2.1, 5;
// Li et al., HPCC, SIGCOMM 2019, 4.1, whose header has 42 bytes: FrameSizes must count them.
#pragma once

#include "congestion/signals.h"

namespace verbena::fabric {

struct TelemetryConfig {
  bool enabled = false;
  // The units of what is told, in bytes: counts are rounded down to them. HPCC, 4.1: 128 and 80.
  u32 sent_unit = 1, queued_unit = 1;
};

inline void note(PathTelemetry& path, const HopTelemetry& hop, const TelemetryConfig& config) {
  if (path.count == PathTelemetry::kMaxHops) return;
  HopTelemetry& noted = path.hops[path.count++];
  noted = hop;
  noted.sent_bytes -= hop.sent_bytes % config.sent_unit;
  noted.queued_bytes -= hop.queued_bytes % config.queued_unit;
}

}  // namespace verbena::fabric
