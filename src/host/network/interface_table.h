// InterfaceTable: the network interfaces of this host and their addresses, as the kernel has them
// now.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "host/os/error.h"
#include "wire/ib/gid.h"

namespace verbena::host {

struct InterfaceAddress {
  GID gid;
  u32 prefix_bits = 0;
  bool usable =
      true;  // false: an IPv6 address still being checked for duplicates, or found to be one
};

struct Interface {
  std::string name;
  u32 index = 0;
  u32 mtu = 0;  // bytes
  bool up = false, loopback = false;
  std::array<u8, 6> mac{};  // zeros: it has none
  u64 link_speed_mbps = 0;  // 0: not known
  std::vector<InterfaceAddress> addresses;
};

struct InterfaceTable {
  std::vector<Interface> interfaces;    // in the kernel's order
  std::string default_route_interface;  // of the default route with the lowest metric; "": none
  std::string host_id;                  // the same at every start of this host; not secret

  [[nodiscard]] static Expected<InterfaceTable> read();
};

// The interface of the best default route in the text of /proc/net/route; "": none.
[[nodiscard]] std::string default_route_interface(std::string_view proc_net_route);

}  // namespace verbena::host
