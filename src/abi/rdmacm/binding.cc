// Local addresses and listening. rdma_bind_addr(3), rdma_listen(3), rdma_get_src_port(3).
#include "abi/rdmacm/binding.h"

#include <arpa/inet.h>

#include "abi/rdmacm/results.h"
#include "host/cm/port_directory.h"

namespace verbena::rdmacm {
namespace {

constexpr int kMaxBacklog = 1024;  // as Linux's rdma_ucm has it

// An IPv6 any address takes IPv4 as well, unless the program says otherwise: as IPV6_V6ONLY.
ListenFamily family_of(const IdObject& id, const SocketEndpoint& endpoint) {
  if (endpoint.is_ipv4()) return ListenFamily::kIPv4;
  if (endpoint.is_any() && !id.options.only_own_family) return ListenFamily::kAny;
  return ListenFamily::kIPv6;
}

// The adapters where the ID listens, or may.
std::vector<OpenDevice*> devices_of(const LocalPlace& place) {
  if (place.device != nullptr) return {place.device};
  std::vector<OpenDevice*> all;
  for (const auto& device : open_devices()) all.push_back(device.get());
  return all;
}

// Takes the port; `endpoint.port` becomes what was got.
int take_port(IdObject& id, const LocalPlace& place, SocketEndpoint& endpoint) {
  auto ports = host::PortDirectory::open();
  if (!ports) return fail(ports.error().error);
  std::vector<u32> slots;
  for (const OpenDevice* device : devices_of(place)) slots.push_back(device->identity().slot);
  const auto bound = ports->bind({.space = id.port_space(),
                                  .port = endpoint.port,
                                  .address = place.address,
                                  .family = family_of(id, endpoint),
                                  .reusable = id.options.reuse_address,
                                  .slots = slots});
  if (!bound) return fail(bound.error().error);
  id.port_owner = bound->owner;
  endpoint.port = bound->port;
  return 0;
}

int listen_on(IdObject& id, OpenDevice& device, int backlog) {
  const SocketEndpoint source = id.source();
  const GID& address = id.place.address;
  const auto listener = device.connections->listen(
      {.service_id = service_id_of({.space = id.port_space(), .port = source.port}),
       .local_gid = address.is_zero() ? std::nullopt : std::optional(address),
       .family = family_of(id, source),
       .backlog = static_cast<u32>(backlog)},
      id);
  if (!listener)
    return fail(listener.error() == Status::kBusy ? EADDRINUSE : abi::to_errno(listener.error()));
  id.listening.push_back({device.connections, *listener});
  return 0;
}

int announce(const IdObject& id) {
  auto ports = host::PortDirectory::open();
  if (!ports) return fail(ports.error().error);
  const auto announced = ports->listen(id.port_owner);
  return announced ? 0 : fail(announced.error().error);
}

void stop_listening(IdObject& id) {
  for (const auto& at : id.listening) at.connections->unlisten(at.id);
  id.listening.clear();
}

}  // namespace

int bind_to(IdObject& id, SocketEndpoint endpoint) {
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

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  IdObject& self = IdObject::of(id);
  const auto endpoint = SocketEndpoint::from(address);
  if (!endpoint || self.state != IdState::kIdle) return fail(EINVAL);
  return bind_to(self, *endpoint);
}

int rdma_listen(rdma_cm_id* id, int backlog) {
  IdObject& self = IdObject::of(id);
  if (self.state == IdState::kIdle && bind_to(self, {}) != 0) return -1;
  if (self.state != IdState::kBound) return fail(EINVAL);
  const int waiting = backlog > 0 && backlog < kMaxBacklog ? backlog : kMaxBacklog;
  for (OpenDevice* device : devices_of(self.place)) {
    if (listen_on(self, *device, waiting) == 0) continue;
    const int error = errno;
    stop_listening(self);
    return fail(error);
  }
  if (announce(self) != 0) {
    const int error = errno;
    stop_listening(self);
    return fail(error);
  }
  self.state = IdState::kListening;
  return 0;
}

__be16 rdma_get_src_port(rdma_cm_id* id) { return htons(IdObject::of(id).source().port); }

__be16 rdma_get_dst_port(rdma_cm_id* id) { return htons(IdObject::of(id).destination().port); }
