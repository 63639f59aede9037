// Names to addresses. rdma_getaddrinfo(3), rdma_freeaddrinfo(3), rdma_resolve_addrinfo(3),
// rdma_query_addrinfo(3). The system's resolver does the work; there is no InfiniBand subnet whose
// administration could be asked (RAI_SA).
#include <infiniband/ib.h>
#include <netdb.h>

#include <cstdlib>
#include <cstring>

#include "abi/rdmacm/events.h"
#include "abi/rdmacm/id_object.h"
#include "abi/rdmacm/newer_cma.h"
#include "abi/rdmacm/results.h"

namespace verbena::rdmacm {
namespace {

int socket_type_of(int qp_type) {
  switch (qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV: return SOCK_STREAM;
    case IBV_QPT_UD: return SOCK_DGRAM;
    default: return 0;
  }
}

int protocol_of(int port_space, int socket_type) {
  switch (port_space) {
    case RDMA_PS_TCP: return IPPROTO_TCP;
    case RDMA_PS_IPOIB:
    case RDMA_PS_UDP: return IPPROTO_UDP;
    case RDMA_PS_IB:
      return socket_type == SOCK_STREAM ? IPPROTO_TCP : socket_type == SOCK_DGRAM ? IPPROTO_UDP : 0;
    default: return 0;
  }
}

addrinfo hints_from(const rdma_addrinfo& hints) {
  addrinfo to{};
  if ((hints.ai_flags & RAI_PASSIVE) != 0) to.ai_flags |= AI_PASSIVE;
  if ((hints.ai_flags & RAI_NUMERICHOST) != 0) to.ai_flags |= AI_NUMERICHOST;
  if (hints.ai_family != AF_IB) to.ai_family = hints.ai_family;
  to.ai_socktype = socket_type_of(hints.ai_qp_type);
  to.ai_protocol = protocol_of(hints.ai_port_space, to.ai_socktype);
  return to;
}

// A copy from malloc(); ENOMEM where there is none.
int copy_address(const sockaddr* from, socklen_t size, sockaddr*& to, socklen_t& to_size) {
  to = static_cast<sockaddr*>(std::malloc(size));
  if (to == nullptr) return fail(ENOMEM);
  std::memcpy(to, from, size);
  to_size = size;
  return 0;
}

// As AF_IB: the GID that the address is, and the ServiceID that the port is in its port space.
int copy_as_ib(const sockaddr* from, PortSpace space, sockaddr*& to, socklen_t& to_size) {
  SocketEndpoint endpoint = SocketEndpoint::from(from).value_or(SocketEndpoint{});
  endpoint.family = AF_IB;
  endpoint.service_prefix = service_prefix_of(space);
  sockaddr_storage whole{};
  endpoint.store(whole);
  return copy_address(reinterpret_cast<const sockaddr*>(&whole), endpoint.size(), to, to_size);
}

// Returns true if the hints want the answer as AF_IB: for numeric addresses only, as their GID
// needs no name service.
bool want_ib(const rdma_addrinfo& hints) {
  constexpr int kNeeded = RAI_FAMILY | RAI_NUMERICHOST;
  return hints.ai_family == AF_IB && (hints.ai_flags & kNeeded) == kNeeded;
}

int default_qp_type(int socket_type) { return socket_type == SOCK_DGRAM ? IBV_QPT_UD : IBV_QPT_RC; }

int default_port_space(int protocol) { return protocol == IPPROTO_UDP ? RDMA_PS_UDP : RDMA_PS_TCP; }

int take_result(const addrinfo& found, const rdma_addrinfo& hints, bool is_passive,
                rdma_addrinfo& to) {
  to.ai_family = want_ib(hints) ? AF_IB : found.ai_family;
  to.ai_qp_type = hints.ai_qp_type != 0 ? hints.ai_qp_type : default_qp_type(found.ai_socktype);
  to.ai_port_space =
      hints.ai_port_space != 0 ? hints.ai_port_space : default_port_space(found.ai_protocol);
  if (is_passive) to.ai_flags = RAI_PASSIVE;
  sockaddr*& address = is_passive ? to.ai_src_addr : to.ai_dst_addr;
  socklen_t& size = is_passive ? to.ai_src_len : to.ai_dst_len;
  if (!want_ib(hints)) return copy_address(found.ai_addr, found.ai_addrlen, address, size);
  return copy_as_ib(found.ai_addr, static_cast<PortSpace>(to.ai_port_space), address, size);
}

// 0, -1 and errno, or an EAI_ value.
int look_up(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo& to) {
  const rdma_addrinfo open{};
  const addrinfo wanted = hints_from(hints != nullptr ? *hints : open);
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(node, service, hints != nullptr ? &wanted : nullptr, &found);
  if (error != 0) return error;
  const bool is_passive = (wanted.ai_flags & AI_PASSIVE) != 0;
  const int taken = take_result(*found, hints != nullptr ? *hints : open, is_passive, to);
  ::freeaddrinfo(found);
  return taken;
}

int take_hints(const rdma_addrinfo& hints, rdma_addrinfo& to) {
  to.ai_flags = hints.ai_flags;
  to.ai_family = hints.ai_family;
  to.ai_qp_type = hints.ai_qp_type;
  to.ai_port_space = hints.ai_port_space;
  if (hints.ai_dst_len == 0) return 0;
  return copy_address(hints.ai_dst_addr, hints.ai_dst_len, to.ai_dst_addr, to.ai_dst_len);
}

int fill(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo& to) {
  const bool by_name = node != nullptr || service != nullptr;
  const int filled = by_name ? look_up(node, service, hints, to) : take_hints(*hints, to);
  if (filled != 0 || hints == nullptr || to.ai_src_len != 0 || hints->ai_src_len == 0)
    return filled;
  return copy_address(hints->ai_src_addr, hints->ai_src_len, to.ai_src_addr, to.ai_src_len);
}

void free_one(rdma_addrinfo* info) {
  for (void* part : {info->ai_connect, info->ai_route, static_cast<void*>(info->ai_src_canonname),
                     static_cast<void*>(info->ai_dst_canonname),
                     static_cast<void*>(info->ai_src_addr), static_cast<void*>(info->ai_dst_addr)})
    std::free(part);
  std::free(info);
}

}  // namespace
}  // namespace verbena::rdmacm

using namespace verbena::rdmacm;

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                     rdma_addrinfo** res) try {
  if (res == nullptr || (node == nullptr && service == nullptr && hints == nullptr))
    return fail(EINVAL);
  if (hints != nullptr && (hints->ai_flags & kFlagSA) != 0) return fail(EOPNOTSUPP);
  auto* const made = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  if (made == nullptr) return fail(ENOMEM);
  if (const int error = fill(node, service, hints, *made); error != 0) {
    free_one(made);
    return error;
  }
  *res = made;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}

void rdma_freeaddrinfo(rdma_addrinfo* res) try {
  while (res != nullptr) free_one(std::exchange(res, res->ai_next));
} catch (...) {
  verbena::abi::refuse(errno_of_exception());
}

int rdma_resolve_addrinfo(rdma_cm_id* id, const char* node, const char* service,
                          const rdma_addrinfo* hints) try {
  if (id == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (self.is_resolving) return fail(EBUSY);
  if (const int error = rdma_getaddrinfo(node, service, hints, &self.resolved); error != 0)
    return error == -1 ? -1 : fail(ENOENT);
  self.is_resolving = true;
  self.push(kEventAddrinfoResolved);
  return complete(self);
} catch (...) {
  return fail(errno_of_exception());
}

int rdma_query_addrinfo(rdma_cm_id* id, rdma_addrinfo** info) try {
  if (id == nullptr || info == nullptr) return fail(EINVAL);
  IdObject& self = IdObject::of(id);
  if (!self.is_resolving) return fail(ENOENT);
  *info = std::exchange(self.resolved, nullptr);
  self.is_resolving = false;
  return 0;
} catch (...) {
  return fail(errno_of_exception());
}
