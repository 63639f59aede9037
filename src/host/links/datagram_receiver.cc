#include "host/links/datagram_receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host/network/socket_address.h"
#include "host/os/kernel_socket.h"
#include "host/os/message_calls.h"
#include "host/os/socket_option.h"

namespace verbena::host {
namespace {

constexpr int kWantedBufferBytes = 64 << 20;

bool set_receive_options(int fd, int family) {
  const bool common =
      set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) && set_option(fd, SOL_UDP, UDP_GRO, 1);
  if (!common) return false;
  if (family == AF_INET)
    return set_option(fd, IPPROTO_IP, IP_RECVTOS, 1) && set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
  // Cards and Linux's soft-RoCE send a UDP checksum of 0 over IPv6 too: the ICRC covers the packet.
  return set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
         set_option(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1) &&
         set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) &&
         set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
}

void enlarge_buffer(int fd) {
  if (set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, kWantedBufferBytes)) return;
  (void)set_option(fd, SOL_SOCKET, SO_RCVBUF, kWantedBufferBytes);
}

// Receives datagrams only for the groups that this socket has joined: IP_MULTICAST_ALL.
bool add_membership(int fd, const GID& group, u32 interface_index) {
  if (group.is_ipv4()) {
    ip_mreqn request{};
    request.imr_multiaddr.s_addr = htonl(group.ipv4());
    request.imr_ifindex = static_cast<int>(interface_index);
    return set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0) &&
           set_option(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, request);
  }
  ipv6_mreq request{};
  std::memcpy(&request.ipv6mr_multiaddr, group.bytes.data(), group.bytes.size());
  request.ipv6mr_interface = interface_index;
  return set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0) &&
         set_option(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, request);
}

tl::unexpected<Error> bind_failure(int error, const GID& address, u16 port) {
  const std::string where = "UDP port " + std::to_string(port) + " on " + address.to_string();
  if (error == EADDRINUSE)
    return failure(error, where +
                              " is taken by another user's process or by the kernel's rdma_rxe; "
                              "stop it, or set VERBENA_ADDRESS to another address of this host");
  if (error == EADDRNOTAVAIL)
    return failure(error, address.to_string() +
                              " is not an address of this host (any more); "
                              "set VERBENA_ADDRESS to one that is");
  if (error == EACCES)
    return failure(error, where +
                              " is for privileged programs; allow it to all: sysctl "
                              "net.ipv4.ip_unprivileged_port_start=1000, or choose another with "
                              "port=N on all hosts");
  return failure(error, "cannot bind " + where + ": " + std::strerror(error));
}

template <typename T>
T control_value(const cmsghdr* c) {
  T value{};
  std::memcpy(&value, CMSG_DATA(c), sizeof(value));
  return value;
}

bool is(const cmsghdr* c, int level, int type) {
  return c->cmsg_level == level && c->cmsg_type == type;
}

// Returns the number of datagrams received; negative if there are none. A single one uses the
// quicker call.
int receive_some(int fd, std::span<mmsghdr> messages) {
  if (messages.size() != 1) return static_cast<int>(receive_messages(fd, messages));
  const long size = receive_message(fd, messages.front().msg_hdr);
  messages.front().msg_len = static_cast<unsigned>(std::max(size, 0L));
  return size >= 0 ? 1 : -1;
}

Expected<Descriptor> open_socket(const GID& address) {
  const int family = family_of(address);
  Descriptor fd = open_kernel_socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (!fd.is_open() || !set_receive_options(fd.get(), family))
    return failure(errno, "cannot open a UDP socket: " + std::string(std::strerror(errno)));
  enlarge_buffer(fd.get());
  return fd;
}

}  // namespace

Expected<DatagramReceiver> DatagramReceiver::open(const GID& address, u32 interface_index,
                                                  u16 port) {
  Expected<Descriptor> socket = open_socket(address);
  if (!socket) return tl::unexpected(socket.error());
  return DatagramReceiver(std::move(*socket), address, interface_index, port);
}

DatagramReceiver::DatagramReceiver(Descriptor socket, const GID& address, u32 interface_index,
                                   u16 port)
    : socket_(std::move(socket)),
      address_(address),
      interface_index_(interface_index),
      port_(port),
      buffers_(std::make_unique_for_overwrite<Buffers>()) {
  for (u32 i = 0; i < kMaxBatch; ++i)
    buffers_->iovs[i] = {.iov_base = buffers_->data[i].data(), .iov_len = kBufferSize};
}

Expected<void> DatagramReceiver::bind() {
  const SocketAddress local(address_, port_, interface_index_);
  if (::bind(fd(), local.data(), local.size()) != 0) return bind_failure(errno, address_, port_);
  return {};
}

// Unlike the port of an address, that of a group may be shared with other users' processes: nothing
// can be taken from them.
Expected<void> DatagramReceiver::join_group() {
  const bool joined = set_option(fd(), SOL_SOCKET, SO_REUSEADDR, 1) && bind().has_value() &&
                      add_membership(fd(), address_, interface_index_);
  if (joined) return {};
  return failure(errno,
                 "cannot join the group " + address_.to_string() + ": " + std::strerror(errno));
}

// A socket that is bound to the interface is in no group with the sockets that are bound to the
// address alone, so it changes no socket's place there (host/sharing/port_group.h). For a moment,
// until it is connected, it also takes datagrams for those sockets. Frames for other processes are
// forwarded.
void DatagramReceiver::follow(const DatagramSource& source) {
  const SocketAddress from(source.address, source.port, interface_index_);
  if ((followed_ || bind_to_interface()) && ::connect(fd(), from.data(), from.size()) == 0)
    followed_ = source;
  else
    close();
}

bool DatagramReceiver::bind_to_interface() {
  const bool ipv4 = address_.is_ipv4();
  return interface_index_ != 0 &&
         set_option(fd(), SOL_SOCKET, SO_BINDTOIFINDEX, static_cast<int>(interface_index_)) &&
         set_option(fd(), ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_RECVTTL : IPV6_RECVHOPLIMIT,
                    0) &&
         bind().has_value();
}

u32 DatagramReceiver::buffer_bytes() const {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  ::getsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &bytes, &size);
  return static_cast<u32>(std::max(bytes, 0));
}

void DatagramReceiver::prepare(u32 count) {
  for (u32 i = 0; i < count; ++i) {
    msghdr& header = buffers_->headers[i].msg_hdr;
    header = {};
    if (!followed_) {
      header.msg_name = &buffers_->sources[i];
      header.msg_namelen = sizeof(sockaddr_storage);
    }
    header.msg_iov = &buffers_->iovs[i];
    header.msg_iovlen = 1;
    header.msg_control = buffers_->controls[i].bytes.data();
    header.msg_controllen = kControlSize;
  }
}

bool DatagramReceiver::receive(LinkCounters& counters) {
  if (!socket_.is_open()) return false;
  prepare(batch_);
  const int got = receive_some(fd(), std::span(buffers_->headers).first(batch_));
  next_ = 0;
  count_ = got > 0 ? static_cast<u32>(got) : 0;
  left_ = {};
  counters.received_datagrams += count_;
  batch_ = count_ == batch_ ? std::min(2 * batch_, kMaxBatch) : std::max(count_, 1u);
  return count_ != 0;
}

bool DatagramReceiver::poll_frame(IngressFrame& out) {
  while (left_.empty()) {
    if (next_ == count_) return false;
    open_datagram(next_++);
  }
  const std::size_t size = std::min(segment_size_, left_.size());
  out = frame_;
  out.transport = left_.first(size);
  left_ = left_.subspan(size);
  ++frame_.identification;
  return true;
}

void DatagramReceiver::open_datagram(u32 index) {
  const mmsghdr& received = buffers_->headers[index];
  left_ = std::span(buffers_->data[index]).first(received.msg_len);
  segment_size_ = left_.size();
  frame_ = {};
  frame_.destination = address_;
  if (followed_) {
    frame_.source = followed_->address;
    frame_.udp_source_port = followed_->port;
    frame_.hop_limit = followed_->hop_limit;
  } else {
    frame_.source = gid_of(buffers_->sources[index]);
    frame_.udp_source_port = port_of(buffers_->sources[index]);
  }
  msghdr header = received.msg_hdr;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (is(c, SOL_UDP, UDP_GRO)) {
      const int size = control_value<int>(c);
      if (size > 0) segment_size_ = static_cast<std::size_t>(size);
    } else if (is(c, IPPROTO_IP, IP_TOS)) {
      frame_.traffic_class = control_value<u8>(c);
    } else if (is(c, IPPROTO_IPV6, IPV6_TCLASS)) {
      frame_.traffic_class = static_cast<u8>(control_value<int>(c));
    } else if (is(c, IPPROTO_IP, IP_TTL) || is(c, IPPROTO_IPV6, IPV6_HOPLIMIT)) {
      frame_.hop_limit = static_cast<u8>(control_value<int>(c));
    }
  }
  if (!followed_) source_.note({frame_.source, frame_.udp_source_port, frame_.hop_limit});
}

void DatagramReceiver::close() { socket_.reset(); }

Expected<void> DatagramReceiver::renew() {
  close();
  Expected<Descriptor> socket = open_socket(address_);
  if (!socket) return tl::unexpected(socket.error());
  socket_ = std::move(*socket);
  return {};
}

}  // namespace verbena::host
