// Facts about a silent peer, found without its help: from the kernel's knowledge of the path and of
// the processes of this host. For explanations. A probe may take kProbePatience, and sends one
// empty datagram to UDP port 4791 of the peer, to see whether an ICMP error comes back.
#pragma once

#include "explain/facts.h"

namespace verbena::host {

inline constexpr Duration kProbePatience = ms(100);

// Fills all of `out` except the facts about this device. `path` is that of the silent QP, `peer`
// its peer.
void probe_peer(const AddressVector& path, QPN peer, explain::PeerFacts& out);

}  // namespace verbena::host
