#include "host/doctor/path.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"
#include "wire/roce/icrc.h"

namespace verbena::host {

Expected<u32> path_mtu(const GID& source, u32 interface_index, const GID& destination) {
  const int family = family_of(destination);
  const Descriptor socket = open_kernel_socket(family, SOCK_DGRAM | SOCK_CLOEXEC);
  const SocketAddress from(source, 0, interface_index);
  const SocketAddress to(destination, kRoCEv2Port, interface_index);
  if (!socket.is_open() || ::bind(socket.get(), from.data(), from.size()) != 0 ||
      ::connect(socket.get(), to.data(), to.size()) != 0)
    return failure(errno, std::strerror(errno));
  int mtu = 0;
  socklen_t size = sizeof(mtu);
  const int failed = family == AF_INET
                         ? ::getsockopt(socket.get(), IPPROTO_IP, IP_MTU, &mtu, &size)
                         : ::getsockopt(socket.get(), IPPROTO_IPV6, IPV6_MTU, &mtu, &size);
  if (failed != 0) return failure(errno, std::strerror(errno));
  return static_cast<u32>(std::max(mtu, 0));
}

Expected<std::vector<GID>> resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found); error != 0)
    return failure(EINVAL, ::gai_strerror(error));
  std::vector<GID> gids;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    sockaddr_storage address{};
    std::memcpy(&address, at->ai_addr, at->ai_addrlen);
    gids.push_back(gid_of(address));
  }
  ::freeaddrinfo(found);
  return gids;
}

OffloadSupport udp_offloads() {
  const Descriptor socket = open_kernel_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
  constexpr int kSegmentSize = 1000;
  return {.segmentation = set_option(socket.get(), SOL_UDP, UDP_SEGMENT, kSegmentSize),
          .coalescing = set_option(socket.get(), SOL_UDP, UDP_GRO, 1)};
}

}  // namespace verbena::host
