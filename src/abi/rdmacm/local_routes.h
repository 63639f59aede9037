// Which device and GIDs an IP address means. The rules of Linux's rdma_cm, for devices that stand
// on one or two addresses each:
//   any address, or a loopback address that no device stands on: every device of this process
//   an address of this host: the device on it, else one on the same interface
//   to a loopback address or an address of this host that no device stands on: back to ourselves,
//     or where only another process of this host listens to the port, to that
//   to a multicast group: the ID's device, else from where the routing table sends it
//   an address that the file of addresses has: the port of the InfiniBand subnet behind it
//   by AF_IB to a GID of the InfiniBand subnet: along the path that its administration names
//   to everything else: from where the routing table sends it
#pragma once

#include <optional>

#include <tl/expected.hpp>

#include "abi/rdmacm/device_table.h"
#include "abi/rdmacm/socket_endpoint.h"
#include "connect/ip_cm.h"

namespace verbena::rdmacm {

struct LocalPlace {
  OpenDevice* device = nullptr;  // nullptr for every one
  GID address{};                 // zero for every one of the device
};
// Errors: ENODEV: no device there. EADDRNOTAVAIL: not an address of this host.
[[nodiscard]] tl::expected<LocalPlace, int> find_local(const SocketEndpoint& endpoint);

struct Route {
  OpenDevice* device = nullptr;
  GID source{}, destination{};  // of one family
  // To a port of an InfiniBand subnet: its GID, and the address that stands for ours, if any does.
  std::optional<GID> remote_gid{}, source_address{};
  u8 sl = 0;                 // of an InfiniBand subnet's path, as its administration says
  std::optional<MTU> mtu{};  // likewise; otherwise the device's
};
// `from`: the device and address that the ID is bound to, or nothing yet. Errors: ENETUNREACH and
// its like of the routing table; ENODEV: no device has an address of that family.
[[nodiscard]] tl::expected<Route, int> find_route(const LocalPlace& from,
                                                  const SocketEndpoint& destination,
                                                  PortSpace space);

}  // namespace verbena::rdmacm
