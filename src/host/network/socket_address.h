// SocketAddress: a GID (an IP address) and a UDP port as the socket calls want them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena::host {

class SocketAddress {
 public:
  SocketAddress() = default;
  // `interface_index` gives link-local IPv6 addresses their meaning; others do not use it.
  SocketAddress(const GID& gid, u16 port, u32 interface_index);

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }

 private:
  union {
    sockaddr_in ipv4;
    sockaddr_in6 ipv6;
  } storage_{};
  socklen_t size_ = sizeof(storage_);
};

// Return the address that a socket of either family reports, as a GID and as a port.
[[nodiscard]] GID gid_of(const sockaddr_storage& from);
[[nodiscard]] u16 port_of(const sockaddr_storage& from);

[[nodiscard]] inline int family_of(const GID& gid) { return gid.is_ipv4() ? AF_INET : AF_INET6; }

}  // namespace verbena::host
