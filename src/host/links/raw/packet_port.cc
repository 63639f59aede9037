#include "host/links/raw/packet_port.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "host/os/kernel_socket.h"
#include "host/os/message_calls.h"
#include "host/os/socket_option.h"
#include "wire/eth/internet_checksum.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

namespace verbena::host {
namespace {

constexpr int kWantedReceiveBytes = 64 << 20, kWantedSendBytes = 4 << 20;
constexpr int kSendPatienceMs = 2;  // for a full transmit queue; the adapter is locked meanwhile
constexpr std::size_t kUDPChecksumAt = 6;

bool is_full(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS; }

bool is_refused_segmentation(int error) {
  return error == EINVAL || error == EIO || error == EMSGSIZE;
}

tl::unexpected<Error> cannot(const std::string& what) {
  const int error = errno;
  if (error == EPERM || error == EACCES)
    return failure(error, "the packet link needs the capability CAP_NET_RAW (" + what + ": " +
                              std::strerror(error) + "); run as root, or VERBENA_LINK=udp");
  return failure(error, "the packet link cannot " + what + ": " + std::strerror(error));
}

void enlarge_buffers(int fd) {
  if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, kWantedReceiveBytes))
    (void)set_option(fd, SOL_SOCKET, SO_RCVBUF, kWantedReceiveBytes);
  if (!set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, kWantedSendBytes))
    (void)set_option(fd, SOL_SOCKET, SO_SNDBUF, kWantedSendBytes);
}

bool bind_to(int fd, u32 interface_index) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(interface_index);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

std::size_t ip_size_of(const GID& address) {
  return address.is_ipv4() ? IPv4Header::kSize : IPv6Header::kSize;
}

// Returns the sum of UDP's pseudo-header, not complemented. The checksum field holds it when
// another component completes the checksum.
u16 pseudo_header_sum(const Burst& burst) {
  InternetChecksum sum;
  const std::size_t first = burst.source.is_ipv4() ? 12 : 0;
  sum.add(std::span(burst.source.bytes).subspan(first));
  sum.add(std::span(burst.destination.bytes).subspan(first));
  sum.add16(kProtocolUDP);
  sum.add16(static_cast<u16>(UDPHeader::kSize + burst.bytes));
  return static_cast<u16>(~sum.finish());
}

void flatten(std::span<const iovec> iovs, u8* out) {
  for (const iovec& iov : iovs) {
    std::memcpy(out, iov.iov_base, iov.iov_len);
    out += iov.iov_len;
  }
}

}  // namespace

Expected<std::unique_ptr<PacketPort>> PacketPort::open(const TakenTraffic& taken, u32 mtu,
                                                       LinkCounters& counters) {
  // Opens the socket for no protocol, so that it receives nothing before its filter is attached.
  Descriptor socket = open_kernel_socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (!socket.is_open()) return cannot("open an AF_PACKET socket");
  const int fd = socket.get();
  if (!set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1)) return cannot("set PACKET_VNET_HDR");
  if (!set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1))
    return cannot("set PACKET_IGNORE_OUTGOING");
  if (!attach_filter(fd, take_filter(taken))) return cannot("attach its BPF filter");
  enlarge_buffers(fd);
  if (!bind_to(fd, taken.interface_index)) return cannot("bind to its interface");
  return std::unique_ptr<PacketPort>(new PacketPort(std::move(socket), taken, mtu, counters));
}

PacketPort::PacketPort(Descriptor socket, const TakenTraffic& taken, u32 mtu,
                       LinkCounters& counters)
    : socket_(std::move(socket)),
      fd_(socket_.get()),
      own_(taken.mac),
      vlan_(taken.vlan),
      udp_port_(taken.udp_port),
      mtu_(mtu),
      counters_(counters),
      sending_(std::make_unique_for_overwrite<Sending>()),
      received_(std::make_unique_for_overwrite<Received>()),
      parser_(taken.udp_port) {
  for (u32 i = 0; i < kMaxBatch; ++i) {
    received_->iovs[i] = {{{.iov_base = &received_->offloads[i], .iov_len = sizeof(VNetHeader)},
                           {.iov_base = received_->data[i].data(), .iov_len = kMaxJoinedSize}}};
    received_->messages[i] = {};
    received_->messages[i].msg_hdr.msg_iov = received_->iovs[i].data();
    received_->messages[i].msg_hdr.msg_iovlen = received_->iovs[i].size();
  }
}

Expected<void> PacketPort::retake(const TakenTraffic& taken) {
  if (!attach_filter(fd_, take_filter(taken))) return cannot("attach its BPF filter");
  return {};
}

u32 PacketPort::receive_buffer_bytes() const {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  (void)::getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
  return static_cast<u32>(bytes);
}

// --- out

void PacketPort::append(const EgressFrame& frame, const MAC& to, PSPSender* sealer) {
  if (frame.transport_size() > kMaxTransportSize)
    counters_.send_dropped += frame.packets;
  else if (frame.type == GIDType::kRoCEv1)
    append_v1(frame, to);
  else
    append_v2(frame, to, sealer);
}

void PacketPort::append_v1(const EgressFrame& frame, const MAC& to) {
  if (v1_count_ == kMaxV1Frames) flush();
  const std::span<u8> room(sending_->v1[v1_count_]);
  std::memset(room.data(), 0, sizeof(VNetHeader));
  const std::size_t size =
      write_frame(path_to(to), frame, {}, flow_, room.subspan(sizeof(VNetHeader)));
  if (size == 0) {
    ++counters_.send_dropped;
    return;
  }
  iovec& iov = sending_->v1_iovs[v1_count_];
  iov = {.iov_base = room.data(), .iov_len = sizeof(VNetHeader) + size};
  msghdr& message = sending_->v1_messages[v1_count_].msg_hdr;
  message = {};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  ++v1_count_;
}

void PacketPort::append_v2(const EgressFrame& frame, const MAC& to, PSPSender* sealer) {
  for (u32 done = 0; done < frame.packets;) {
    std::size_t bursts_before = assembler_.bursts().size();
    auto result = assembler_.append(frame, nullptr, max_segment_size(frame), done, sealer);
    if (result == BurstAssembler::Append::kFull) {
      flush();
      bursts_before = 0;
      result = assembler_.append(frame, nullptr, max_segment_size(frame), done, sealer);
      CHECK(result != BurstAssembler::Append::kFull);
    }
    if (result == BurstAssembler::Append::kGone) {
      counters_.send_dropped += frame.packets - done;
      return;
    }
    if (assembler_.bursts().size() > bursts_before) to_[bursts_before] = to;
  }
}

u32 PacketPort::max_segment_size(const EgressFrame& frame) const {
  const u32 headers_size = static_cast<u32>(ip_size_of(frame.source) + UDPHeader::kSize);
  return may_segment_ && mtu_ > headers_size ? mtu_ - headers_size : 0;
}

void PacketPort::flush() {
  patient_ = true;
  if (v1_count_ != 0) flush_v1();
  if (!assembler_.bursts().empty()) flush_v2();
}

void PacketPort::flush_v1() {
  for (std::span<mmsghdr> left = std::span(sending_->v1_messages).first(v1_count_);
       !left.empty();) {
    u32 sent = 0;
    const bool all = send_all(left, sent);
    counters_.sent_frames += sent;
    counters_.sent_bursts += sent;
    left = left.subspan(sent);
    if (all) break;
    ++counters_.send_dropped;
    left = left.subspan(1);
  }
  v1_count_ = 0;
}

void PacketPort::flush_v2() {
  const std::span<const Burst> bursts = assembler_.bursts();
  for (std::size_t i = 0; i < bursts.size(); ++i) {
    Head& head = sending_->heads[i];
    set_head(bursts[i], to_[i], 0, bursts[i].bytes, head);
    if (bursts[i].segments > 1) set_offload(bursts[i], head);
    std::span<iovec> iovs(sending_->iovs[i]);
    iovs[0] = {.iov_base = &head, .iov_len = sizeof(VNetHeader)};
    iovs[1] = {.iov_base = head.headers.data(), .iov_len = head.headers_size};
    std::ranges::copy(bursts[i].iovs, iovs.begin() + 2);
    msghdr& message = sending_->messages[i].msg_hdr;
    message = {};
    message.msg_iov = iovs.data();
    message.msg_iovlen = bursts[i].iovs.size() + 2;
  }
  for (std::size_t i = 0; i < bursts.size();) {
    u32 sent = 0;
    const bool all = send_all(std::span(sending_->messages).subspan(i, bursts.size() - i), sent);
    for (; sent != 0; --sent, ++i) {
      ++counters_.sent_bursts;
      counters_.sent_frames += bursts[i].segments;
    }
    if (!all) {
      on_refused(bursts[i], to_[i]);
      ++i;
    }
  }
  assembler_.clear();
}

// Returns false if the kernel refused the message after those that were sent; errno says why.
bool PacketPort::send_all(std::span<mmsghdr> messages, u32& sent) {
  while (sent < messages.size()) {
    const long n = send_messages(fd_, messages.subspan(sent));
    if (n > 0)
      sent += static_cast<u32>(n);
    else if (!is_full(errno) || !wait_for_room())
      return false;
  }
  return true;
}

bool PacketPort::wait_for_room() {
  if (!std::exchange(patient_, false)) return false;
  pollfd waiting{.fd = fd_, .events = POLLOUT, .revents = 0};
  return ::poll(&waiting, 1, kSendPatienceMs) == 1;
}

// The headers of the segment at `place`, or of the whole burst. `udp_size`: of UDP's payload.
void PacketPort::set_head(const Burst& burst, const MAC& to, u32 place, u32 udp_size,
                          Head& head) const {
  head.offload = {};
  head.headers_size = write_v2_headers(path_to(to),
                                       {.source = burst.source,
                                        .destination = burst.destination,
                                        .udp_source_port = burst.udp_source_port,
                                        .udp_destination_port = udp_port_,
                                        .identification = static_cast<u16>(place)},
                                       {.dscp = dscp_of(burst.traffic_class),
                                        .ecn = ecn_of(burst.traffic_class),
                                        .hop_limit = burst.hop_limit},
                                       udp_size - kICRCSize, head.headers);
}

// virtio 1.2, 5.1.6.2: to be cut, each packet's UDP checksum to be completed.
void PacketPort::set_offload(const Burst& burst, Head& head) const {
  const std::size_t ethernet_size = EthernetHeader::kSize + (vlan_ ? VLANTag::kSize : 0);
  const std::size_t udp_at = ethernet_size + ip_size_of(burst.source);
  head.offload.flags = VNetHeader::kNeedsChecksum;
  head.offload.gso_type = VNetHeader::kCutAsUDP;
  head.offload.headers_size = static_cast<u16>(head.headers_size);
  head.offload.segment_size = static_cast<u16>(burst.segment_size);
  head.offload.checksum_start = static_cast<u16>(udp_at);
  head.offload.checksum_offset = kUDPChecksumAt;
  store_be16(head.headers.data() + udp_at + kUDPChecksumAt, pseudo_header_sum(burst));
}

void PacketPort::on_refused(const Burst& burst, const MAC& to) {
  if (burst.segments == 1 || !is_refused_segmentation(errno)) {
    counters_.send_dropped += burst.segments;
    return;
  }
  ++counters_.segmentation_refused;
  may_segment_ = false;
  send_one_by_one(burst, to);
}

// Each with the Identification that its ICRC was made for.
void PacketPort::send_one_by_one(const Burst& burst, const MAC& to) {
  flatten(burst.iovs, sending_->flat.data());
  std::span<u8> left = std::span(sending_->flat).first(burst.bytes);
  for (u32 place = 0; !left.empty(); ++place) {
    const std::span<u8> segment =
        left.first(std::min<std::size_t>(burst.segment_size, left.size()));
    left = left.subspan(segment.size());
    Head head;
    set_head(burst, to, place, static_cast<u32>(segment.size()), head);
    std::array<iovec, 3> iovs{{{.iov_base = &head, .iov_len = sizeof(VNetHeader)},
                               {.iov_base = head.headers.data(), .iov_len = head.headers_size},
                               {.iov_base = segment.data(), .iov_len = segment.size()}}};
    mmsghdr message{};
    message.msg_hdr.msg_iov = iovs.data();
    message.msg_hdr.msg_iovlen = iovs.size();
    u32 sent = 0;
    const bool went = send_all({&message, 1}, sent);
    ++(went ? counters_.sent_frames : counters_.send_dropped);
    if (went) ++counters_.sent_bursts;
  }
}

// --- in

bool PacketPort::receive() {
  if (!socket_.is_open()) return false;
  const long got = receive_messages(fd_, std::span(received_->messages).first(batch_));
  next_ = 0;
  count_ = got > 0 ? static_cast<u32>(got) : 0;
  counters_.received_datagrams += count_;
  batch_ = count_ == batch_ ? std::min(2 * batch_, kMaxBatch) : std::max(count_, 1u);
  return count_ != 0;
}

bool PacketPort::poll_frame(IngressFrame& out) {
  while (!parser_.poll(out)) {
    if (next_ == count_) return false;
    open_next();
  }
  return true;
}

void PacketPort::open_next() {
  const u32 index = next_++;
  const mmsghdr& message = received_->messages[index];
  const VNetHeader& offload = received_->offloads[index];
  const bool joined = offload.gso_type == VNetHeader::kCutAsUDP;
  if ((message.msg_hdr.msg_flags & MSG_TRUNC) != 0 || message.msg_len < sizeof(VNetHeader) ||
      (!joined && offload.gso_type != VNetHeader::kNotCut)) {
    ++counters_.receive_dropped;
    return;
  }
  parser_.open(std::span(received_->data[index]).first(message.msg_len - sizeof(VNetHeader)),
               joined ? offload.segment_size : 0);
}

}  // namespace verbena::host
