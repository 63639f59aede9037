#include "host/network/socket_address.h"

#include <arpa/inet.h>

#include <cstring>

namespace verbena::host {

SocketAddress::SocketAddress(const GID& gid, u16 port, u32 interface_index) {
  if (gid.is_ipv4()) {
    storage_.ipv4 = {};
    storage_.ipv4.sin_family = AF_INET;
    storage_.ipv4.sin_port = htons(port);
    storage_.ipv4.sin_addr.s_addr = htonl(gid.ipv4());
    size_ = sizeof(sockaddr_in);
    return;
  }
  storage_.ipv6 = {};
  storage_.ipv6.sin6_family = AF_INET6;
  storage_.ipv6.sin6_port = htons(port);
  std::memcpy(&storage_.ipv6.sin6_addr, gid.bytes.data(), gid.bytes.size());
  if (gid.is_link_local() || gid.is_multicast()) storage_.ipv6.sin6_scope_id = interface_index;
  size_ = sizeof(sockaddr_in6);
}

GID gid_of(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET)
    return GID::from_ipv4(ntohl(reinterpret_cast<const sockaddr_in&>(from).sin_addr.s_addr));
  GID gid;
  std::memcpy(gid.bytes.data(), &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr,
              gid.bytes.size());
  return gid;
}

u16 port_of(const sockaddr_storage& from) {
  return ntohs(from.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(from).sin_port
                                         : reinterpret_cast<const sockaddr_in6&>(from).sin6_port);
}

}  // namespace verbena::host
