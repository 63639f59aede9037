// QPTraffic: what one queue pair has sent and received. Octets are of whole transport packets, BTH
// to ICRC. CNPs are the port's, not a QP's. What needed no packets, between processes of this host,
// counts as the packets that it would have been (local_traffic.h).
#pragma once

#include "base/types.h"

namespace verbena {

struct QPTraffic {
  u64 sent_packets = 0, sent_octets = 0;
  u64 received_packets = 0,
      received_octets = 0;  // those that were admitted (device/port/admission.h)

  QPTraffic& operator+=(const QPTraffic& more) {
    sent_packets += more.sent_packets;
    sent_octets += more.sent_octets;
    received_packets += more.received_packets;
    received_octets += more.received_octets;
    return *this;
  }
};

}  // namespace verbena
