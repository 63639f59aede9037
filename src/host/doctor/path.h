// The properties of the path to a peer, as the kernel knows them.
#pragma once

#include <vector>

#include "host/network/local_address.h"
#include "host/os/error.h"
#include "wire/ib/gid.h"

namespace verbena::host {

// Returns the size in bytes of an IP packet that fits the path from `source`, as far as the kernel
// has learned. The failure says why there is no path.
[[nodiscard]] Expected<u32> path_mtu(const GID& source, u32 interface_index,
                                     const GID& destination);

// The IP addresses of a name, or of an address's text.
[[nodiscard]] Expected<std::vector<GID>> resolve(const std::string& name);

struct OffloadSupport {
  bool segmentation = false;  // UDP_SEGMENT: the kernel cuts bursts
  bool coalescing = false;    // UDP_GRO: the kernel joins them again
};
[[nodiscard]] OffloadSupport udp_offloads();

}  // namespace verbena::host
