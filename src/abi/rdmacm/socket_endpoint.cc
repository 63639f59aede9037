#include "abi/rdmacm/socket_endpoint.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netinet/in.h>

#include <cstring>

namespace verbena::rdmacm {
namespace {

constexpr u32 kLoopbackNetwork = 127;

constexpr u64 kPortMask = 0xffff;
constexpr u16 kDefaultPKey = 0xffff;

// One of the families, whole.
union Address {
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
  sockaddr_ib ib;
};

}  // namespace

std::optional<SocketEndpoint> SocketEndpoint::from(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  Address ip{};
  SocketEndpoint endpoint{.family = address->sa_family};
  switch (address->sa_family) {
    case AF_INET:
      std::memcpy(&ip.ipv4, address, sizeof ip.ipv4);
      endpoint.address = GID::from_ipv4(ntohl(ip.ipv4.sin_addr.s_addr));
      endpoint.port = ntohs(ip.ipv4.sin_port);
      return endpoint;
    case AF_INET6:
      std::memcpy(&ip.ipv6, address, sizeof ip.ipv6);
      std::memcpy(endpoint.address.bytes.data(), &ip.ipv6.sin6_addr, sizeof ip.ipv6.sin6_addr);
      endpoint.port = ntohs(ip.ipv6.sin6_port);
      endpoint.scope_id = ip.ipv6.sin6_scope_id;
      return endpoint;
    case AF_IB: {
      std::memcpy(&ip.ib, address, sizeof ip.ib);
      std::memcpy(endpoint.address.bytes.data(), &ip.ib.sib_addr, sizeof ip.ib.sib_addr);
      const u64 service_id = be64toh(ip.ib.sib_sid) & be64toh(ip.ib.sib_sid_mask);
      endpoint.port = static_cast<u16>(service_id & kPortMask);
      endpoint.service_prefix = service_id & ~kPortMask;
      endpoint.scope_id = static_cast<u32>(ip.ib.sib_scope_id);
      return endpoint;
    }
    default: return std::nullopt;
  }
}

void SocketEndpoint::store(sockaddr_storage& to) const {
  Address ip{};
  if (family == AF_INET) {
    ip.ipv4.sin_family = AF_INET;
    ip.ipv4.sin_port = htons(port);
    ip.ipv4.sin_addr.s_addr = htonl(address.ipv4());
  } else if (family == AF_IB) {
    ip.ib.sib_family = AF_IB;
    ip.ib.sib_pkey = htobe16(kDefaultPKey);
    ip.ib.sib_sid = htobe64(service_prefix | port);
    ip.ib.sib_sid_mask =
        htobe64((service_prefix != 0 ? ~kPortMask : 0) | (port != 0 ? kPortMask : 0));
    ip.ib.sib_scope_id = scope_id;
    std::memcpy(&ip.ib.sib_addr, address.bytes.data(), sizeof ip.ib.sib_addr);
  } else {
    ip.ipv6.sin6_family = AF_INET6;
    ip.ipv6.sin6_port = htons(port);
    ip.ipv6.sin6_scope_id = scope_id;
    std::memcpy(&ip.ipv6.sin6_addr, address.bytes.data(), sizeof ip.ipv6.sin6_addr);
  }
  std::memcpy(&to, &ip, size());
}

bool SocketEndpoint::fits(PortSpace space) const {
  return service_prefix == 0 || service_prefix == service_prefix_of(space);
}

bool SocketEndpoint::is_any() const {
  return address.is_zero() || (address.is_ipv4() && address.ipv4() == 0);
}

bool SocketEndpoint::is_loopback() const {
  if (address.is_ipv4()) return address.ipv4() >> 24 == kLoopbackNetwork;
  GID one;
  one.bytes[15] = 1;
  return address == one;
}

socklen_t SocketEndpoint::size() const {
  switch (family) {
    case AF_INET: return sizeof(sockaddr_in);
    case AF_IB: return sizeof(sockaddr_ib);
    default: return sizeof(sockaddr_in6);
  }
}

}  // namespace verbena::rdmacm
