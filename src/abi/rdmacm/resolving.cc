// Addresses and routes to a peer. rdma_resolve_addr(3), rdma_resolve_route(3). The event is there
// when the call returns, unless a neighbour has to be asked first whether it is there at all.
#include <algorithm>

#include "abi/rdmacm/binding.h"
#include "abi/rdmacm/events.h"
#include "abi/rdmacm/results.h"
#include "wire/ib/lid_address.h"

namespace verbena::rdmacm {
namespace {

SocketEndpoint any_like(const SocketEndpoint& destination) {
  SocketEndpoint any{.family = destination.family, .service_prefix = destination.service_prefix};
  if (!destination.is_ipv4()) any.address = {};
  return any;
}

// Linux shows programs the loopback address where they named one, and the GIDs of the device.
SocketEndpoint source_endpoint(const Route& route, const SocketEndpoint& destination,
                               const SocketEndpoint& bound) {
  SocketEndpoint source{.family = destination.family,
                        .address = route.source_address.value_or(route.source),
                        .port = bound.port,
                        .service_prefix = destination.service_prefix};
  if (route.source_address && !bound.is_any()) source.address = bound.address;
  if (source.address.is_ipv4() != destination.is_ipv4()) source.address = destination.address;
  if (route.source.is_link_local()) source.scope_id = destination.scope_id;
  return source;
}

void set_route(IdObject& id, const Route& route, const SocketEndpoint& destination) {
  const SocketEndpoint bound = id.source();
  id.place = {.device = route.device, .address = route.source};
  id.set_device(*route.device);
  id.set_gids(route.source, route.remote_gid.value_or(route.destination));
  id.set_destination(destination);
  id.set_source(source_endpoint(route, destination, bound));
  id.path = {.local = route.source,
             .remote = route.destination,
             .local_gid_index = route.device->gid_index(route.source),
             .traffic_class = id.options.traffic_class,
             .sl = route.sl,
             .mtu = route.mtu.value_or(route.device->identity().mtu)};
  if (id.options.ack_timeout != 0)
    id.path.packet_life_time = static_cast<u8>(id.options.ack_timeout - 1);
}

void on_address_resolved(IdObject& id) {
  id.state = IdState::kAddressResolved;
  id.push(RDMA_CM_EVENT_ADDR_RESOLVED);
}

void on_neighbour_absent(IdObject& id) {
  id.state = IdState::kBound;
  id.push(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
}

// Returns the neighbour to wait for; nullopt if it is there, or if there is none to ask.
std::optional<host::NextHop> neighbour_to_ask(const Route& route,
                                              const SocketEndpoint& destination) {
  if (route.source == route.destination || lid_of_address(route.destination) != 0)
    return std::nullopt;
  const auto hop = host::NextHop::towards(route.destination, destination.scope_id);
  if (!hop || hop->presence() == host::Presence::kThere) return std::nullopt;
  hop->ask();
  return hop->presence() == host::Presence::kAsked ? hop : std::nullopt;
}

// Returns false if there is no thread to wait in.
bool wait_for(IdObject& id, const host::NextHop& hop, Duration patience) {
  id.state = IdState::kResolvingAddress;
  auto wait = host::NextHopWait::start(hop, patience, [&id](bool is_there) {
    is_there ? on_address_resolved(id) : on_neighbour_absent(id);
  });
  if (!wait) return false;
  id.neighbour = std::move(*wait);
  return true;
}

}  // namespace
}  // namespace verbena::rdmacm

using namespace verbena;
using namespace verbena::rdmacm;

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int timeout_ms) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  const auto to = SocketEndpoint::from(destination);
  const auto from = SocketEndpoint::from(source);
  if (!to || (source != nullptr && !from)) return fail(EINVAL);
  if (self.state != IdState::kIdle && self.state != IdState::kBound) return fail(EINVAL);
  if (!to->fits(self.port_space())) return fail(EPROTONOSUPPORT);
  if (self.state == IdState::kIdle && bind_to(self, from.value_or(any_like(*to))) != 0) return -1;
  const auto route = find_route(self.place, *to, self.port_space());
  if (!route) {
    self.push(RDMA_CM_EVENT_ADDR_ERROR, -route.error());
    return complete(self);
  }
  set_route(self, *route, *to);
  self.neighbour.reset();
  const auto hop = neighbour_to_ask(*route, *to);
  if (!hop || !wait_for(self, *hop, ms(std::max(timeout_ms, 0)))) on_address_resolved(self);
  return complete(self);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_resolve_route(rdma_cm_id* id, int) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (self.state != IdState::kAddressResolved) return fail(EINVAL);
  self.publish_path();
  self.state = IdState::kRouteResolved;
  self.push(RDMA_CM_EVENT_ROUTE_RESOLVED);
  return complete(self);
} catch (...) {
  return fail(errno_of_exception());
}
