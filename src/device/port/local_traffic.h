// What QPs of one host have done for each other without packets, told as the packets that it would
// have been: a card counts what it sends to itself, and so do we. Each message has one
// acknowledgement, or one request; pad octets are not counted.
#pragma once

#include "device/port/counters.h"
#include "device/qp/qp_traffic.h"
#include "transport/local/local_counts.h"

namespace verbena {

[[nodiscard]] LocalWork done_without_packets(const EngineCounters& requester);

// Of one QP: what it has done at its peer, and its peer at it.
[[nodiscard]] QPTraffic as_packets(const LocalWork& done, const LocalWork& by_peer);

// Acknowledgements that it has sent without a frame.
[[nodiscard]] QPTraffic as_packets(u64 acknowledgements);

void add(Counters& port, const QPTraffic& more);

}  // namespace verbena
