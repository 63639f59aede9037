// The signals that congestion control gets from the network, besides CNPs and losses.
#pragma once

#include <array>
#include <span>

#include "base/rate.h"

namespace verbena {

// One hop's in-band telemetry, as it was when the packet left that switch's port. Li et al.,
// SIGCOMM 2019, 4.1.
struct HopTelemetry {
  Rate rate;             // of the port
  Time at;               // when the packet left, by that switch's clock
  u64 sent_bytes = 0;    // by the port, in its whole life
  u64 queued_bytes = 0;  // in the port's queue
};

// The hops of one packet, in the order of its path. Hops beyond kMaxHops are not recorded.
struct PathTelemetry {
  static constexpr std::size_t kMaxHops = 8;
  std::array<HopTelemetry, kMaxHops> hops;
  u32 count = 0;

  std::span<const HopTelemetry> used() const { return std::span(hops).first(count); }
};

// An acknowledgement of new data.
struct AckSignal {
  u64 acknowledged_bytes = 0;  // of payload, for the first time
  u64 in_flight_bytes = 0;     // of payload, sent and still not acknowledged
  // Time since the newest of the acknowledged packets was sent; 0 if it is not known (for example
  // because it was sent twice).
  Duration round_trip{};
  const PathTelemetry* path = nullptr;  // of that packet; nullptr: none was collected
};

}  // namespace verbena
