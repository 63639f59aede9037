// SocketEndpoint: a sockaddr of IPv4 or IPv6, as programs give and get them, with its address as a
// GID.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "connect/ip_cm.h"

namespace verbena::rdmacm {

struct SocketEndpoint {
  int family = AF_INET;
  GID address = GID::from_ipv4(0);  // an IPv4 one also in AF_INET6, where it is ::ffff:a.b.c.d
  u16 port = 0;
  u32 scope_id = 0;

  // nullptr, or a family that is neither: nullopt.
  [[nodiscard]] static std::optional<SocketEndpoint> from(const sockaddr* address);
  // Those, and AF_IB, whose address is a GID.
  [[nodiscard]] static std::optional<SocketEndpoint> from_with_ib(const sockaddr* address);
  void store(sockaddr_storage& to) const;

  [[nodiscard]] bool is_any() const;       // 0.0.0.0, ::
  [[nodiscard]] bool is_loopback() const;  // 127/8, ::1
  [[nodiscard]] bool is_ipv4() const { return address.is_ipv4(); }
  [[nodiscard]] socklen_t size() const;
};

}  // namespace verbena::rdmacm
