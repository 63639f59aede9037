// The MAC address of a device's interface.
#pragma once

#include "host/network/local_address.h"
#include "host/os/error.h"
#include "wire/eth/ethernet.h"

namespace verbena::host {

// EOPNOTSUPP: the interface has no Ethernet frames.
[[nodiscard]] Expected<MAC> interface_mac(const LocalAddress& address);

}  // namespace verbena::host
