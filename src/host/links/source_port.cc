#include "host/links/source_port.h"

#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <netinet/udp.h>

#include <array>
#include <cstring>

#include "base/bytes.h"
#include "host/os/kernel_socket.h"
#include "host/os/socket_option.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/udp.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

constexpr int kSendBufferBytes = 4 << 20;
constexpr int kReceiveBufferBytes = 0;  // the kernel makes it its smallest

// Datagrams that arrive here answer nothing: the filter drops them before they take memory.
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

// Listener: a socket that takes the datagram, so that the kernel does not answer it.
struct Listener {
  Descriptor socket;
  SocketAddress address;
};

Listener listen_on(const GID& address, u32 interface_index) {
  Listener listener{.socket = open_kernel_socket(family_of(address), SOCK_DGRAM | SOCK_CLOEXEC),
                    .address = SocketAddress(address, 0, interface_index)};
  socklen_t size = listener.address.size();
  if (::bind(listener.socket.get(), listener.address.data(), size) != 0 ||
      ::getsockname(listener.socket.get(), listener.address.data(), &size) != 0)
    listener.socket.reset();
  return listener;
}

bool connect_to(int fd, const GID& destination, u16 port, u32 interface_index) {
  const SocketAddress to(destination, port, interface_index);
  return ::connect(fd, to.data(), to.size()) == 0;
}

void dissolve(int fd) {
  const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
  (void)::connect(fd, &nobody, sizeof(nobody));
}

// Clears the error of an earlier datagram, which the kernel would report with the next one.
void forget_error(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  (void)::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
}

// An empty datagram, which the kernel then shows on the error queue.
bool send_shown(int fd, SocketAddress to) {
  if (!set_option(fd, SOL_SOCKET, SO_TIMESTAMPING, int{SOF_TIMESTAMPING_SOFTWARE})) return false;
  alignas(cmsghdr) std::array<u8, CMSG_SPACE(sizeof(u32))> control{};
  msghdr message{};
  message.msg_name = to.data();
  message.msg_namelen = to.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_len = CMSG_LEN(sizeof(u32));
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SO_TIMESTAMPING;
  const u32 when = SOF_TIMESTAMPING_TX_SCHED;
  std::memcpy(CMSG_DATA(header), &when, sizeof(when));
  return ::sendmsg(fd, &message, MSG_DONTWAIT) == 0;
}

}  // namespace

SourcePort::SourcePort(const GID& address, u16 number, u32 interface_index, u16 destination_port)
    : socket_(open_socket(address, number, interface_index)),
      address_(address),
      interface_index_(interface_index),
      number_(number),
      destination_port_(destination_port) {}

void SourcePort::set_hop_limit(u8 wanted) {
  if (hop_limit_ == wanted) return;
  const bool done = address_.is_ipv4()
                        ? set_option(fd(), IPPROTO_IP, IP_TTL, int{wanted})
                        : set_option(fd(), IPPROTO_IPV6, IPV6_UNICAST_HOPS, int{wanted});
  if (done) hop_limit_ = wanted;
}

void SourcePort::set_segment_size(u32 wanted) {
  if (segment_size_ == wanted) return;
  if (set_option(fd(), SOL_UDP, UDP_SEGMENT, static_cast<int>(wanted))) segment_size_ = wanted;
}

void SourcePort::send_alone(std::span<const u8> payload, const SocketAddress& to) {
  set_segment_size(0);
  (void)take_identification();
  (void)::sendto(fd(), payload.data(), payload.size(), MSG_DONTWAIT, to.data(), to.size());
}

void SourcePort::connect() {
  disconnect();
  if (!connect_to(fd(), steady_, destination_port_, interface_index_)) return;
  peer_ = steady_;
  if (!address_.is_ipv4()) return;
  const std::optional<u16> next = learn_identification();
  counts_ = may_connect_ = next.has_value();
  if (next)
    next_identification_ = *next;
  else
    disconnect();
}

void SourcePort::disconnect() {
  if (!peer_) return;
  dissolve(fd());
  forget_error(fd());
  peer_.reset();
  counts_ = false;
  in_a_row_ = 0;
}

// The datagram on the error queue begins with the headers of its outgoing interface, of any kind.
std::optional<u16> SourcePort::learn_identification() const {
  constexpr std::size_t kShown = IPv4Header::kSize + UDPHeader::kSize, kMaxBefore = 64;
  std::array<u8, kMaxBefore + kShown> bytes{};
  const Listener listener = listen_on(address_, interface_index_);
  const bool was_sent = listener.socket.is_open() && send_shown(fd(), listener.address);
  const ssize_t size =
      was_sent ? ::recv(fd(), bytes.data(), bytes.size(), MSG_ERRQUEUE | MSG_DONTWAIT) : -1;
  (void)set_option(fd(), SOL_SOCKET, SO_TIMESTAMPING, 0);
  if (size < static_cast<ssize_t>(kShown)) return std::nullopt;
  const auto shown = std::span(bytes).first(static_cast<std::size_t>(size)).last<kShown>();
  const std::optional<IPv4Header> ip = IPv4Header::decode(shown.first<IPv4Header::kSize>());
  if (!ip || ip->protocol != kProtocolUDP || ip->source != address_.ipv4()) return std::nullopt;
  return static_cast<u16>(ip->identification + 1);
}

void SourcePort::close() {
  socket_.reset();
  peer_.reset();
  counts_ = false;
}

}  // namespace verbena::host
