// CMCounters: counters of a CMAgent, each with a name in the statistics; each only counts up.
#pragma once

#include "base/types.h"

namespace verbena {

struct CMCounters {
  u64 mads_sent = 0;
  u64 retries_sent = 0;       // of mads_sent: repeated because there was no answer
  u64 mads_received = 0;      // of all kinds
  u64 malformed = 0;          // dropped: not a CM message, or not from a QP 1
  u64 duplicates = 0;         // seen before; answered again if that helps
  u64 unmatched = 0;          // dropped or refused: names no connection, or one in another state
  u64 foreign = 0;            // dropped: names a connection with another peer
  u64 backlog_drops = 0;      // requests dropped: the listener's backlog is full
  u64 table_drops = 0;        // requests dropped: max_connections
  u64 output_drops = 0;       // dropped: the driver did not drain poll_mad() or poll_event()
  u64 stale_connections = 0;  // detected because a peer used its QPN again
};

}  // namespace verbena
