#include "abi/rdmacm/local_routes.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "abi/rdmacm/processes_of_host.h"
#include "abi/rdmacm/subnet_group.h"
#include "host/links/fabric/address_map.h"
#include "host/links/fabric/fabric_protocol.h"
#include "host/links/fabric/sa_client.h"
#include "host/network/interface_table.h"
#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"
#include "wire/ib/lid_address.h"
#include "wire/ib/path_record.h"

namespace verbena::rdmacm {
namespace {

constexpr u16 kAnyPort = 9;  // a port that a probe's socket connects to; nothing is sent

bool is_on(const host::Interface& interface, const GID& address) {
  return std::ranges::any_of(interface.addresses,
                             [&](const auto& known) { return known.gid == address; });
}

bool stands_on(const host::Interface& interface, const OpenDevice& device) {
  return std::ranges::any_of(device.identity().gids,
                             [&](const GID& gid) { return is_on(interface, gid); });
}

// The device on the interface that has this address, if the address is ours.
tl::expected<OpenDevice*, int> device_on_interface_of(const GID& address) {
  const auto table = host::InterfaceTable::read();
  if (!table) return tl::unexpected(table.error().error);
  for (const host::Interface& interface : table->interfaces) {
    if (!is_on(interface, address)) continue;
    for (const auto& device : open_devices())
      if (stands_on(interface, *device)) return device.get();
    return tl::unexpected(ENODEV);
  }
  return tl::unexpected(EADDRNOTAVAIL);
}

int connect_probe(const host::Descriptor& socket, const SocketEndpoint& to) {
  const host::SocketAddress address(to.address, kAnyPort, to.scope_id);
  return ::connect(socket.get(), address.data(), address.size()) == 0 ? 0 : errno;
}

host::Descriptor open_probe(const GID& address) {
  return host::open_kernel_socket(host::family_of(address), SOCK_DGRAM | SOCK_CLOEXEC);
}

// The address that the kernel would send from. It is `to` itself where that is an address of ours.
tl::expected<GID, int> source_by_kernel(const SocketEndpoint& to) {
  const host::Descriptor socket = open_probe(to.address);
  if (const int error = connect_probe(socket, to); error != 0) return tl::unexpected(error);
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return tl::unexpected(errno);
  return host::gid_of(name);
}

// Not from 127/8 to other hosts, for example.
bool is_reachable_from(const GID& source, const SocketEndpoint& to) {
  const host::Descriptor socket = open_probe(source);
  const host::SocketAddress address(source, 0, to.scope_id);
  return ::bind(socket.get(), address.data(), address.size()) == 0 &&
         connect_probe(socket, to) == 0;
}

// A simulated fabric, whose hosts have addresses of this one.
bool is_in_a_fabric() { return std::getenv(host::kFabricVariable) != nullptr; }
bool is_in_our_fabric(const GID& address) {
  return is_in_a_fabric() && address.is_ipv4() && host::fabric_host_of(address.ipv4());
}

OpenDevice* first_with_family(bool ipv4) {
  for (const auto& device : open_devices())
    if (device->gid_of_family(ipv4) != nullptr) return device.get();
  return nullptr;
}

OpenDevice* device_for_source(const GID& source) {
  if (OpenDevice* device = find_device(source)) return device;
  const auto near = device_on_interface_of(source);
  if (near && (*near)->gid_of_family(source.is_ipv4()) != nullptr) return *near;
  return first_with_family(source.is_ipv4());
}

tl::expected<Route, int> back_to(OpenDevice* device, const GID& address) {
  return Route{.device = device, .source = address, .destination = address};
}

tl::expected<Route, int> to_ourselves(const LocalPlace& from, bool ipv4) {
  OpenDevice* device = from.device != nullptr ? from.device : first_with_family(ipv4);
  if (device == nullptr) device = first_with_family(!ipv4);
  if (device == nullptr) return tl::unexpected(ENODEV);
  if (!from.address.is_zero()) return back_to(device, from.address);
  const GID* own = device->gid_of_family(ipv4);
  return back_to(device, own != nullptr ? *own : *device->gid_of_family(!ipv4));
}

// From the place's device, else where the routing table would send it, else any that could.
tl::expected<Route, int> to_group(const LocalPlace& from, const SocketEndpoint& group) {
  const bool ipv4 = group.is_ipv4();
  OpenDevice* device = from.device;
  if (device == nullptr)
    if (const auto source = source_by_kernel(group)) device = device_for_source(*source);
  if (device == nullptr) device = first_with_family(ipv4);
  if (device == nullptr) return tl::unexpected(ENODEV);
  const GID* own = from.address.is_zero() ? device->gid_of_family(ipv4) : &from.address;
  if (own == nullptr || own->is_ipv4() != ipv4) return tl::unexpected(ENETUNREACH);
  return Route{.device = device, .source = *own, .destination = group.address};
}

tl::expected<Route, int> to_other(const LocalPlace& from, const GID& source,
                                  const GID& destination) {
  const bool ipv4 = destination.is_ipv4();
  OpenDevice* device = from.device != nullptr ? from.device : device_for_source(source);
  if (device == nullptr) return tl::unexpected(ENODEV);
  if (!from.address.is_zero()) {
    if (from.address.is_ipv4() != ipv4) return tl::unexpected(ENETUNREACH);
    return Route{.device = device, .source = from.address, .destination = destination};
  }
  const GID* own = device->has(source) ? &source : device->gid_of_family(ipv4);
  if (own == nullptr) return tl::unexpected(ENETUNREACH);
  return Route{.device = device, .source = *own, .destination = destination};
}

bool is_of_this_host(const SocketEndpoint& endpoint, const GID& source) {
  return source == endpoint.address || endpoint.is_loopback();
}

tl::expected<Route, int> to_reachable(const LocalPlace& from, const GID& source,
                                      const SocketEndpoint& destination) {
  const auto route = to_other(from, source, destination.address);
  if (route && !is_reachable_from(route->source, destination)) return tl::unexpected(ENETUNREACH);
  return route;
}

// To an address of this host that no device stands on. Its listeners are those of every device of
// this host: ours first.
tl::expected<Route, int> to_this_host(const LocalPlace& from, const SocketEndpoint& destination,
                                      PortSpace space) {
  const auto ourselves = to_ourselves(from, destination.is_ipv4());
  if (!ourselves || is_in_a_fabric()) return ourselves;
  const auto listeners =
      addresses_of_listeners(service_id_of({.space = space, .port = destination.port}));
  if (std::ranges::find(listeners, ourselves->source) != listeners.end()) return ourselves;
  const LocalPlace own{.device = ourselves->device, .address = ourselves->source};
  for (const GID& listener : listeners) {
    SocketEndpoint there = destination;
    there.address = listener;
    const auto source = source_by_kernel(there);
    if (!source || !is_of_this_host(there, *source)) continue;
    if (const auto route = to_reachable(own, *source, there)) return route;
  }
  return ourselves;
}

// Returns the device at whose port a path of AF_IB begins, or nullptr if none is on an InfiniBand
// subnet.
OpenDevice* device_on_subnet(const LocalPlace& from) {
  for (const auto& device : open_devices())
    if ((from.device == nullptr || from.device == device.get()) && is_on_subnet(*device))
      return device.get();
  return nullptr;
}

tl::expected<Route, int> to_subnet(OpenDevice& device, const GID& to) {
  const GID& own = device.identity().gids[0];
  const PathRecord wanted{.dgid = to, .sgid = own};
  SARequest request{.method = MADMethod::kGet,
                    .attribute = SAAttribute::kPathRecord,
                    .component_mask = PathRecord::kDGID | PathRecord::kSGID |
                                      PathRecord::kReversible | PathRecord::kNumbPath};
  wanted.encode(std::span(request.record).first<PathRecord::kSize>());
  const auto answer = host::ask_subnet_administration(request);
  if (!answer) return tl::unexpected(answer.error().error);
  const PathRecord path = *PathRecord::decode(*answer);
  return Route{.device = &device,
               .source = own,
               .destination = address_of_lid(path.dlid),
               .remote_gid = to,
               .sl = path.sl,
               .mtu = mtu_from_code(path.mtu)};
}

// Read once; `verbena run` has told the user of mistakes.
const host::AddressMap& address_map() {
  static const host::AddressMap map = [] {
    const auto read = host::AddressMap::from_environment();
    return read ? *read : host::AddressMap();
  }();
  return map;
}

// `target` stands behind the destination's address.
tl::expected<Route, int> to_target(const LocalPlace& from, const SocketEndpoint& destination,
                                   PortSpace space, const GID& target) {
  if (target.is_ipv4()) {
    SocketEndpoint host = destination;
    host.address = target;
    return find_route(from, host, space);
  }
  OpenDevice* const device = device_on_subnet(from);
  if (device == nullptr) return tl::unexpected(ENETUNREACH);
  auto route = to_subnet(*device, target);
  if (!route) return route;
  const bool ipv4 = destination.is_ipv4();
  route->source_address = address_map().address_of(route->source, ipv4);
  if (const GID* own = device->gid_of_family(ipv4); !route->source_address && own != nullptr)
    route->source_address = *own;
  return route;
}

}  // namespace

tl::expected<LocalPlace, int> find_local(const SocketEndpoint& endpoint) {
  if (open_devices().empty()) return tl::unexpected(errno);
  if (endpoint.is_any()) return LocalPlace{};
  if (OpenDevice* device = find_device(endpoint.address))
    return LocalPlace{.device = device, .address = endpoint.address};
  if (const auto target = address_map().target_of(endpoint.address)) {
    OpenDevice* const device = find_device(*target);
    if (device == nullptr) return tl::unexpected(EADDRNOTAVAIL);
    return LocalPlace{.device = device, .address = *target};
  }
  if (endpoint.is_loopback()) return LocalPlace{};
  const auto near = device_on_interface_of(endpoint.address);
  if (!near) return tl::unexpected(near.error());
  return LocalPlace{.device = *near, .address = {}};
}

tl::expected<Route, int> find_route(const LocalPlace& from, const SocketEndpoint& destination,
                                    PortSpace space) {
  if (open_devices().empty()) return tl::unexpected(errno);
  const GID& to = destination.address;
  if (to.is_multicast()) return to_group(from, destination);
  if (destination.is_any()) return to_this_host(from, destination, space);
  if (const auto target = address_map().target_of(to); target && *target != to)
    return to_target(from, destination, space, *target);
  if (destination.family == AF_IB && !to.is_ipv4())
    if (OpenDevice* const device = device_on_subnet(from)) return to_subnet(*device, to);
  OpenDevice* const own = find_device(to);
  if (own != nullptr && (from.device == nullptr || from.device == own))
    return to_other({.device = own, .address = from.address}, to, to);
  const auto source = source_by_kernel(destination);
  if (!source) return tl::unexpected(source.error());
  const bool has_no_device = own == nullptr && !has_a_device(to) && !is_in_our_fabric(to);
  if (has_no_device && is_of_this_host(destination, *source))
    return to_this_host(from, destination, space);
  return to_reachable(from, *source, destination);
}

}  // namespace verbena::rdmacm
