// The work that QPs of one host have done for each other without packets, counted as the packets
// that it would have needed. A card counts what it sends to itself, and so do we. Each message has
// one acknowledgement, or one request; pad bytes are not counted.
#pragma once

#include "device/port/counters.h"
#include "device/qp/qp_traffic.h"
#include "transport/local/local_counts.h"

namespace verbena {

[[nodiscard]] LocalWork done_without_packets(const EngineCounters& requester);

// Returns the traffic of one QP: `done` is its work at its peer, `by_peer` the peer's work at it.
[[nodiscard]] QPTraffic as_packets(const LocalWork& done, const LocalWork& by_peer);

// Returns the traffic of acknowledgements that a QP has sent without a frame.
[[nodiscard]] QPTraffic as_packets(u64 acknowledgements);

void add(Counters& port, const QPTraffic& more);

}  // namespace verbena
