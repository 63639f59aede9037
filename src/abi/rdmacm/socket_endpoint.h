// SocketEndpoint: a sockaddr of IPv4, IPv6 or AF_IB, as programs give and get them, with its
// address as a GID. AF_IB names a GID and a ServiceID, whose lower 16 bits are a port (Vol 1,
// A11.2).
#pragma once

#include <sys/socket.h>

#include <optional>

#include "connect/ip_cm.h"

namespace verbena::rdmacm {

// Returns the prefix of all ServiceIDs of a port space.
constexpr u64 service_prefix_of(PortSpace space) {
  return service_id_of({.space = space, .port = 0}).value;
}

struct SocketEndpoint {
  int family = AF_INET;
  GID address = GID::from_ipv4(0);  // an IPv4 one also in AF_INET6, where it is ::ffff:a.b.c.d
  u16 port = 0;
  u32 scope_id = 0;
  u64 service_prefix = 0;  // AF_IB: the ServiceID without the port; 0: of any port space

  // Returns nullopt if `address` is nullptr or of another family.
  [[nodiscard]] static std::optional<SocketEndpoint> from(const sockaddr* address);
  void store(sockaddr_storage& to) const;

  // Returns false for a ServiceID of another port space.
  [[nodiscard]] bool fits(PortSpace space) const;
  [[nodiscard]] bool is_any() const;       // 0.0.0.0, ::
  [[nodiscard]] bool is_loopback() const;  // 127/8, ::1
  [[nodiscard]] bool is_ipv4() const { return address.is_ipv4(); }
  [[nodiscard]] socklen_t size() const;
};

}  // namespace verbena::rdmacm
