// Local addresses and listening. rdma_bind_addr(3), rdma_listen(3), rdma_get_src_port(3).
#include "abi/rdmacm/binding.h"

#include <arpa/inet.h>

#include <algorithm>

#include "abi/rdmacm/results.h"
#include "abi/rdmacm/subnet_group.h"
#include "host/cm/port_directory.h"

namespace verbena::rdmacm {
namespace {

constexpr int kMaxBacklog = 1024;  // as Linux's rdma_ucm has it

struct Place {
  OpenDevice* device;
  GID address;
};

// An IPv6 any address takes IPv4 as well, unless the program says otherwise: as IPV6_V6ONLY. The
// GID of a port of an InfiniBand subnet may stand behind an address of either family.
bool is_wanted(const OpenDevice& device, const GID& gid, const SocketEndpoint& endpoint,
               const IdOptions& options) {
  if (gid.is_zero()) return false;
  if (is_on_subnet(device) && !gid.is_ipv4()) return true;
  return endpoint.is_ipv4() ? gid.is_ipv4() : !gid.is_ipv4() || !options.only_own_family;
}

// The addresses of a device that an address which is none of them stands for: those of the family;
// and where it has none of IPv4, all, for loopback addresses are in both families.
void add_places(OpenDevice& device, const SocketEndpoint& endpoint, const IdOptions& options,
                std::vector<Place>& to) {
  const bool lacks_ipv4 = endpoint.is_ipv4() && device.gid_of_family(true) == nullptr;
  std::vector<GID> seen;
  for (const GID& gid : device.identity().gids) {
    if (std::ranges::find(seen, gid) != seen.end()) continue;
    seen.push_back(gid);
    if (lacks_ipv4 ? !gid.is_zero() : is_wanted(device, gid, endpoint, options))
      to.push_back({&device, gid});
  }
}

// Where the ID is, or listens.
std::vector<Place> places_of(const LocalPlace& place, const SocketEndpoint& endpoint,
                             const IdOptions& options) {
  if (!place.address.is_zero()) return {{place.device, place.address}};
  std::vector<Place> places;
  for (const auto& device : open_devices())
    if (place.device == nullptr || place.device == device.get())
      add_places(*device, endpoint, options, places);
  return places;
}

// Takes the port; `endpoint.port` becomes what was got.
int take_port(IdObject& id, const LocalPlace& place, SocketEndpoint& endpoint) {
  auto ports = host::PortDirectory::open();
  if (!ports) return fail(ports.error().error);
  std::vector<host::PortPlace> places;
  for (const Place& at : places_of(place, endpoint, id.options))
    places.push_back({.address = at.address, .slot = at.device->identity().slot});
  const auto bound = ports->bind({.space = id.port_space(),
                                  .port = endpoint.port,
                                  .reusable = id.options.reuse_address,
                                  .places = places});
  if (!bound) return fail(bound.error().error);
  id.port = host::HeldPort(bound->owner);
  endpoint.port = bound->port;
  return 0;
}

int listen_at(IdObject& id, const Place& at, int backlog) {
  const auto listener = at.device->connections->listen(
      {.service_id = service_id_of({.space = id.port_space(), .port = id.source().port}),
       .local_gid = at.address,
       .backlog = static_cast<u32>(backlog)},
      id);
  if (!listener)
    return fail(listener.error() == Status::kBusy ? EADDRINUSE : abi::to_errno(listener.error()));
  id.listening.push_back({at.device->connections, *listener});
  return 0;
}

int announce(const IdObject& id) {
  auto ports = host::PortDirectory::open();
  if (!ports) return fail(ports.error().error);
  const auto announced = ports->listen(id.port.owner());
  return announced ? 0 : fail(announced.error().error);
}

void stop_listening(IdObject& id) {
  for (const auto& at : id.listening) at.connections->unlisten(at.id);
  id.listening.clear();
}

int start_listening(IdObject& id, int backlog) {
  for (const Place& at : places_of(id.place, id.source(), id.options))
    if (listen_at(id, at, backlog) != 0) return -1;
  return announce(id);
}

}  // namespace

int bind_to(IdObject& id, SocketEndpoint endpoint) {
  if (!endpoint.fits(id.port_space())) return fail(EPROTONOSUPPORT);
  endpoint.service_prefix = service_prefix_of(id.port_space());
  const auto place = find_local(endpoint);
  if (!place) return fail(place.error());
  if (take_port(id, *place, endpoint) != 0) return -1;
  id.place = *place;
  id.set_source(endpoint);
  if (place->device != nullptr) {
    id.set_device(*place->device);
    id.set_gids(place->address, {});
  }
  id.state = IdState::kBound;
  return 0;
}

}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  const auto endpoint = SocketEndpoint::from(address);
  if (!endpoint || self.state != IdState::kIdle) return fail(EINVAL);
  return bind_to(self, *endpoint);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_listen(rdma_cm_id* id, int backlog) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (self.state == IdState::kIdle && bind_to(self, {}) != 0) return -1;
  if (self.state != IdState::kBound) return fail(EINVAL);
  const int waiting = backlog > 0 && backlog < kMaxBacklog ? backlog : kMaxBacklog;
  if (start_listening(self, waiting) != 0) {
    const int error = errno;
    stop_listening(self);
    return fail(error);
  }
  self.state = IdState::kListening;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

__be16 rdma_get_src_port(rdma_cm_id* id) try {
  return htons(IdObject::of(id).source().port);
} catch (...) {
  verbena::abi::refuse(errno_of_exception());
  return 0;
}

__be16 rdma_get_dst_port(rdma_cm_id* id) try {
  return htons(IdObject::of(id).destination().port);
} catch (...) {
  verbena::abi::refuse(errno_of_exception());
  return 0;
}
