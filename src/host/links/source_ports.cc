#include "host/links/source_ports.h"

#include <linux/filter.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "host/kernel_socket.h"
#include "host/socket_address.h"
#include "host/socket_option.h"
#include "wire/roce/source_port.h"

namespace verbena::host {
namespace {

constexpr int kSendBufferBytes = 4 << 20;
constexpr int kReceiveBufferBytes = 0;  // the kernel makes it its smallest
constexpr u32 kMaxTries = 64;
constexpr u32 kPortsInRange = 0x10000 - kFirstSourcePort;

// What arrives here is an answer to nobody: dropped before it takes memory.
bool discard_received(int fd) {
  sock_filter drop_all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program{.len = 1, .filter = &drop_all};
  return set_option(fd, SOL_SOCKET, SO_ATTACH_FILTER, program);
}

// Multicast leaves by the interface that the device stands on, and is looped back to this host's
// members: IP_MULTICAST_LOOP is the default.
bool set_multicast_options(int fd, int family, u32 interface_index) {
  const int index = static_cast<int>(interface_index);
  if (family == AF_INET) {
    ip_mreqn interface {};
    interface.imr_ifindex = index;
    return set_option(fd, IPPROTO_IP, IP_MULTICAST_IF, interface) &&
           set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, int{kSocketHopLimit});
  }
  return set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, index) &&
         set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, int{kSocketHopLimit});
}

bool set_ip_options(int fd, int family) {
  if (family == AF_INET)
    return set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE) &&
           set_option(fd, IPPROTO_IP, IP_TTL, int{kSocketHopLimit});
  return set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) &&
         set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, int{kSocketHopLimit});
}

// A socket bound to `address` and `port`; on failure none, and errno says why.
Descriptor open_socket(const GID& address, u16 port, u32 interface_index) {
  const int family = family_of(address);
  Descriptor fd = open_kernel_socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  const SocketAddress local(address, port, interface_index);
  if (!fd.is_open() || !set_option(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1) ||
      !discard_received(fd.get()) || !set_ip_options(fd.get(), family) ||
      !set_multicast_options(fd.get(), family, interface_index))
    return {};
  (void)set_option(fd.get(), SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  (void)set_option(fd.get(), SOL_SOCKET, SO_RCVBUF, kReceiveBufferBytes);
  if (::bind(fd.get(), local.data(), local.size()) != 0) return {};
  return fd;
}

// The first free port from `wanted` on. Free: unbound, or bound by our own kind of the same user.
Descriptor open_near(const GID& address, u32 interface_index, u16 wanted, u16& number) {
  for (u32 i = 0; i < kMaxTries; ++i) {
    number = static_cast<u16>(kFirstSourcePort + (wanted - kFirstSourcePort + i) % kPortsInRange);
    Descriptor fd = open_socket(address, number, interface_index);
    if (fd.is_open() || errno != EADDRINUSE) return fd;
  }
  return {};
}

}  // namespace

void SourcePort::set_hop_limit(u8 wanted, bool is_ipv4) const {
  if (hop_limit == nullptr || *hop_limit == wanted) return;
  const bool done = is_ipv4 ? set_option(fd, IPPROTO_IP, IP_TTL, int{wanted})
                            : set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, int{wanted});
  if (done) *hop_limit = wanted;
}

Expected<std::unique_ptr<SourcePorts>> SourcePorts::open(const GID& address, u32 interface_index) {
  std::unique_ptr<SourcePorts> ports(new SourcePorts(address, interface_index));
  Descriptor& fd = ports->sockets_[kMaxPorts];
  fd = open_near(address, interface_index, kFirstSourcePort, ports->first_.number);
  if (!fd.is_open())
    return failure(errno, "cannot open a UDP socket on " + address.to_string() +
                              " to send from: " + std::strerror(errno));
  ports->first_.fd = fd.get();
  ports->first_.hop_limit = &ports->hop_limits_[kMaxPorts];
  return ports;
}

const SourcePort& SourcePorts::open_slot(u16 wanted) {
  const std::size_t slot = wanted % kMaxPorts;
  SourcePort& port = ports_[slot];
  Descriptor fd = open_near(address_, interface_index_, static_cast<u16>(wanted | kFirstSourcePort),
                            port.number);
  if (fd.is_open()) {
    port.fd = fd.get();
    port.hop_limit = &hop_limits_[slot];
    sockets_[slot] = std::move(fd);
  } else {
    port = first_;
  }
  return port;
}

void SourcePorts::close() {
  for (Descriptor& socket : sockets_) socket.reset();
  ports_.fill({});
  first_ = {};
}

}  // namespace verbena::host
