// QPTraffic: what one queue pair has sent and received. Octets are of whole transport packets, BTH
// to ICRC. CNPs are the port's, not a QP's. A READ or WRITE between processes of this host that
// needed no packets counts as one at each end, of its payload; a READ as one more for its answer.
#pragma once

#include "base/types.h"

namespace verbena {

struct QPTraffic {
  u64 sent_packets = 0, sent_octets = 0;
  u64 received_packets = 0, received_octets = 0;  // those that were admitted (device/admission.h)
};

}  // namespace verbena
