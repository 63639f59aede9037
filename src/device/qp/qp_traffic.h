// QPTraffic: what one queue pair has sent and received. Bytes are of whole transport packets, BTH
// to ICRC. CNPs are the port's, not a QP's. What needed no packets, between processes of this host,
// counts as the packets that it would have been (local_traffic.h).
#pragma once

#include "base/types.h"

namespace verbena {

struct QPTraffic {
  u64 sent_packets = 0, sent_bytes = 0;
  u64 received_packets = 0,
      received_bytes = 0;  // those that were admitted (device/port/admission.h)

  QPTraffic& operator+=(const QPTraffic& more) {
    sent_packets += more.sent_packets;
    sent_bytes += more.sent_bytes;
    received_packets += more.received_packets;
    received_bytes += more.received_bytes;
    return *this;
  }
};

}  // namespace verbena
