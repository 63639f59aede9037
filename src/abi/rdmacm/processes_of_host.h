// The Verbena processes of this host that may be peers: those of this user and network namespace.
#pragma once

#include <vector>

#include "connect/ip_cm.h"
#include "wire/ib/gid.h"

namespace verbena::rdmacm {

// Returns true if a process has a device on the address. A process of RoCE is known by its socket
// there, a process of iWARP by the ports that its programs have bound.
[[nodiscard]] bool has_a_device(const GID& address);

// Returns the addresses at which programs listen to the service.
[[nodiscard]] std::vector<GID> addresses_of_listeners(ServiceId service);

}  // namespace verbena::rdmacm
