// The GID table of a device that stands on an address.
#pragma once

#include <vector>

#include "device/device_config.h"
#include "host/encryption/encryption_settings.h"
#include "host/network/local_address.h"
#include "host/settings/link_kind.h"

namespace verbena::host {

// Indexes 0 and 1 are IPv6, 2 and 3 IPv4; where one is missing, the other is in its places. The
// other addresses of the interface follow. 0 and 2 are RoCEv1 on a raw link; everything else is
// RoCEv2: a UDP socket cannot carry v1.
[[nodiscard]] std::vector<GIDEntry> gid_table(const LocalAddress& address, LinkKind link,
                                              OnWire on_wire = OnWire::kClear);

}  // namespace verbena::host
