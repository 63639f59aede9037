// NetworkFaults: the faults of a simulated network, and their times.
//
// A link that goes down loses the frames that are on it. Both ends notice at once, as loss of
// signal is noticed (IEEE 802.3, 46.3.4). A switch drops the frames that wait at the port, removes
// the port from its groups of equal paths, and sends later frames over the others; without others
// they are unroutable. A host keeps the data that it has to send. The other switches continue as
// before until the routing protocol has told them: `convergence` later all routes are those of the
// links that are up then. BGP in a data centre (RFC 7938) takes milliseconds to seconds. When the
// link is up again its ends use it at once, and the others after as long a time.
//
// A stuck pause is a broken NIC or port that tells its neighbour to pause, again and again: Guo et
// al., RDMA over Commodity Ethernet at Scale, SIGCOMM 2016, 4.3. A slow
// receiver: 4.4 there.
#pragma once

#include <vector>

#include "base/time.h"
#include "fabric/receiver.h"
#include "fabric/topology.h"
#include "faults/rule.h"

namespace verbena::fabric {

struct LinkOutage {
  u32 link = 0;  // in Topology::links
  Time down;
  Time up = Time::never();  // after `down`
};

struct StuckPause {
  NodeIndex node = 0;      // that sends the pauses
  u32 port = 0;            // of the node's
  u8 priorities = 1 << 3;  // a bit each
  Time from;
  Time until = Time::never();  // then it lets its neighbour go on
};

struct SlowReceiver {
  NodeIndex node = 0;
  ReceiverConfig receiver{};  // in place of the host's
};

// Faults of single packets on a link. packet_faults.h
struct LinkRules {
  u32 link = 0;        // in Topology::links
  NodeIndex node = 0;  // at one of its ends: what it sends is `tx`
  std::vector<faults::Rule> rules{};
};

struct NetworkFaults {
  std::vector<LinkOutage> outages{};
  Duration convergence = ms(10);
  std::vector<StuckPause> stuck_pauses{};
  std::vector<SlowReceiver> slow_receivers{};
  std::vector<LinkRules> rules{};
};

}  // namespace verbena::fabric
