// What can be found out about a silent peer without its help, by the kernel's knowledge of the way
// there and of the processes of this host. For explanations: it may take kProbePatience, and sends
// one empty datagram to UDP port 4791 of the peer, to see whether an ICMP error comes back.
#pragma once

#include "explain/facts.h"

namespace verbena::host {

inline constexpr Duration kProbePatience = ms(100);

// Fills all of `out` but what is about this device. `path`: of the silent QP; `peer`: its peer.
void probe_peer(const AddressVector& path, QPN peer, explain::PeerFacts& out);

}  // namespace verbena::host
