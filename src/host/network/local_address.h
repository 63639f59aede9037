// LocalAddress: the IP address (or the addresses of one interface) that a Verbena device stands on,
// and how it is chosen. VERBENA_ADDRESS: comma-separated IPv4/IPv6 addresses or interface names,
// one device each: an address gives a device with just that one, a name one with all of the
// interface's, up to a limit. Unset: the interface of the default route; without one,
// the first other interface that is up; else loopback.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "host/network/interface_table.h"
#include "host/os/error.h"
#include "wire/ib/gid.h"

namespace verbena::host {

struct LocalAddress {
  static constexpr std::size_t kMaxOthers = 6;

  std::string device_name;  // "verbena0", "verbena1", ... in order of choice
  std::string interface;    // "eth0"
  u32 interface_index = 0;
  u32 mtu = 0;                // of the interface, bytes
  std::optional<GID> ipv4;    // at least one of the two
  std::optional<GID> ipv6;    // link-local preferred (GID 0/1), ::1 on loopback
  std::vector<GID> others{};  // of the interface, at most kMaxOthers
  u64 node_guid = 0;          // EUI-64 from the interface's MAC address; made up where it has none
  u64 link_speed_mbps = 0;    // 0: not known

  [[nodiscard]] std::vector<GID> all() const;  // IPv4 first
};

using AddressError = Error;

// The devices this process has. Never an empty list: that is an error ("no usable address").
// `choice` is the value of VERBENA_ADDRESS, or "" for the default.
[[nodiscard]] tl::expected<std::vector<LocalAddress>, AddressError> choose_local_addresses(
    const std::string& choice);

// The same rules on interfaces of one's own.
[[nodiscard]] tl::expected<std::vector<LocalAddress>, AddressError> choose_local_addresses(
    const std::string& choice, const InterfaceTable& table);

}  // namespace verbena::host
