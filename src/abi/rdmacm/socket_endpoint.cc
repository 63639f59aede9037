#include "abi/rdmacm/socket_endpoint.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netinet/in.h>

#include <cstring>

namespace verbena::rdmacm {
namespace {

constexpr u32 kLoopbackNetwork = 127;

// One of the two families, whole.
union IPAddress {
  sockaddr_in ipv4;
  sockaddr_in6 ipv6;
};

}  // namespace

std::optional<SocketEndpoint> SocketEndpoint::from(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  IPAddress ip{};
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
    default: return std::nullopt;
  }
}

std::optional<SocketEndpoint> SocketEndpoint::from_with_ib(const sockaddr* address) {
  if (address == nullptr || address->sa_family != AF_IB) return from(address);
  sockaddr_ib ib{};
  std::memcpy(&ib, address, sizeof ib);
  SocketEndpoint endpoint{.family = AF_IB};
  std::memcpy(endpoint.address.bytes.data(), &ib.sib_addr, sizeof ib.sib_addr);
  return endpoint;
}

void SocketEndpoint::store(sockaddr_storage& to) const {
  IPAddress ip{};
  if (family == AF_INET) {
    ip.ipv4.sin_family = AF_INET;
    ip.ipv4.sin_port = htons(port);
    ip.ipv4.sin_addr.s_addr = htonl(address.ipv4());
  } else {
    ip.ipv6.sin6_family = AF_INET6;
    ip.ipv6.sin6_port = htons(port);
    ip.ipv6.sin6_scope_id = scope_id;
    std::memcpy(&ip.ipv6.sin6_addr, address.bytes.data(), sizeof ip.ipv6.sin6_addr);
  }
  std::memcpy(&to, &ip, size());
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
  return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace verbena::rdmacm
