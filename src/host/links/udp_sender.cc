#include "host/links/udp_sender.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "host/os/message_calls.h"
#include "host/os/socket_option.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"
#include "wire/roce/icrc.h"

namespace verbena::host {
namespace {

constexpr int kSendPatienceMs = 2;  // for a full transmit queue; the adapter is locked meanwhile

bool is_full(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS; }

// EIO: the interface has no checksum offload; EINVAL, EMSGSIZE: segments longer than the path's
// MTU.
bool is_refused_segmentation(int error) {
  return error == EINVAL || error == EIO || error == EMSGSIZE;
}

bool may_share_call(const Burst& a, const Burst& b) {
  return a.port == b.port && a.hop_limit == b.hop_limit;
}

// Where the interface computes no UDP checksums the kernel would, over each byte of each packet.
// Cards and Linux's soft-RoCE send 0, which is none: the ICRC covers the packet.
void go_without_checksums(int fd) { (void)set_option(fd, SOL_SOCKET, SO_NO_CHECK, 1); }

// Returns the number of messages that the kernel took; negative if none, and errno says why. A
// single message uses the quicker call.
int try_to_send(int fd, std::span<mmsghdr> messages) {
  if (messages.size() != 1) return static_cast<int>(send_messages(fd, messages));
  return send_message(fd, messages.front().msg_hdr) >= 0 ? 1 : -1;
}

// The first error of a connected socket may belong to an earlier datagram: nobody listens there. So
// a second attempt follows.
int send_some(const SourcePort& port, std::span<mmsghdr> messages) {
  const int sent = try_to_send(port.fd(), messages);
  if (sent > 0 || is_full(errno) || !port.is_connected()) return sent;
  return try_to_send(port.fd(), messages);
}

void flatten(std::span<const iovec> iovs, u8* out) {
  for (const iovec& iov : iovs) {
    std::memcpy(out, iov.iov_base, iov.iov_len);
    out += iov.iov_len;
  }
}

// Each datagram on its own has the Identification 0, which changes its ICRC. The ICRC of an
// encapsulated packet does not depend on it.
void make_icrc_alone(const Burst& burst, std::span<u8> segment) {
  const std::span<u8> transport = segment.first(segment.size() - kICRCSize);
  store_icrc(icrc_of({.source = burst.source,
                      .destination = burst.destination,
                      .udp_source_port = burst.udp_source_port},
                     transport),
             segment.last<kICRCSize>());
}

}  // namespace

UDPSender::UDPSender(const LocalAddress& address, std::vector<SourcePorts*> ports,
                     LinkCounters& counters)
    : mtu_(address.mtu),
      interface_index_(address.interface_index),
      ports_(std::move(ports)),
      counters_(counters) {}

SourcePorts* UDPSender::ports_for(const EgressFrame& frame) const {
  if (frame.source.is_ipv4() != frame.destination.is_ipv4()) return nullptr;
  const auto found = std::ranges::find(ports_, frame.source, &SourcePorts::address);
  return found == ports_.end() ? nullptr : *found;
}

u32 UDPSender::max_segment_size(const GID& destination) const {
  const auto known =
      std::span(unsegmented_).first(std::min<std::size_t>(unsegmented_count_, kMaxUnsegmented));
  if (std::ranges::find(known, destination) != known.end()) return 0;
  const std::size_t ip_size = destination.is_ipv4() ? IPv4Header::kSize : IPv6Header::kSize;
  const u32 headers_size = static_cast<u32>(ip_size + UDPHeader::kSize);
  return mtu_ > headers_size ? mtu_ - headers_size : 0;
}

void UDPSender::append(const EgressFrame& frame, Encapsulation* around) {
  SourcePorts* ports = ports_for(frame);
  if (ports == nullptr || frame.transport_size() > kMaxTransportSize) {
    counters_.send_dropped += frame.packets;
    return;
  }
  SourcePort* const port = &ports->get(frame.udp_source_port);
  const u32 segment_size = max_segment_size(frame.destination);
  for (u32 done = 0; done < frame.packets;) {
    auto result = assembler_.append(frame, port, segment_size, done, around);
    if (result == BurstAssembler::Append::kFull) {
      flush();
      result = assembler_.append(frame, port, segment_size, done, around);
      CHECK(result != BurstAssembler::Append::kFull);
    }
    if (result == BurstAssembler::Append::kGone) {
      counters_.send_dropped += frame.packets - done;
      return;
    }
  }
}

void UDPSender::flush() {
  may_wait_ = true;
  std::span<const Burst> left = assembler_.bursts();
  while (!left.empty()) {
    const auto other = std::ranges::find_if(
        left, [&](const Burst& burst) { return !may_share_call(burst, left.front()); });
    const auto same = static_cast<std::size_t>(other - left.begin());
    send_run(left.first(same));
    left = left.subspan(same);
  }
  assembler_.clear();
  if (SourcePort* const steady = std::exchange(steady_, nullptr)) steady->connect();
}

void UDPSender::send_run(std::span<const Burst> run) {
  const Burst& first = run.front();
  if (!first.destination.is_multicast())
    first.port->set_hop_limit(SendMessage::hop_limit_of(first));
  if (first.segments > 1) first.port->note_cut(first.segment_size);
  prepare(run, 0);
  for (std::size_t i = 0; i < run.size();) {
    const int sent = send_some(*run[i].port, std::span(headers_).subspan(i, run.size() - i));
    for (int k = 0; k < sent; ++k) count_sent(run[i++]);
    if (sent > 0) continue;
    if (is_full(errno) && wait_for_room(run[i].port->fd())) continue;
    on_refused(run[i++]);
    prepare(run, i);
  }
}

// The control data of each message depends on the current options of the socket.
void UDPSender::prepare(std::span<const Burst> run, std::size_t from) {
  for (std::size_t i = from; i < run.size(); ++i)
    messages_[i].set(run[i], run[i].iovs, interface_index_, headers_[i].msg_hdr);
}

bool UDPSender::wait_for_room(int fd) {
  if (!std::exchange(may_wait_, false)) return false;
  pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&waiting, 1, kSendPatienceMs) == 1;
}

void UDPSender::on_refused(const Burst& burst) {
  const int why = errno;
  burst.port->disconnect();
  burst.port->set_segment_size(0);
  if (burst.segments == 1 || !is_refused_segmentation(why)) {
    counters_.send_dropped += burst.segments;
    return;
  }
  if (why == EIO && burst.destination.is_ipv4()) go_without_checksums(burst.port->fd());
  ++counters_.segmentation_refused;
  unsegmented_[unsegmented_count_++ % kMaxUnsegmented] = burst.destination;
  send_one_by_one(burst);
}

void UDPSender::send_one_by_one(const Burst& burst) {
  if (flat_ == nullptr)
    flat_ = std::make_unique_for_overwrite<u8[]>(BurstAssembler::kMaxBurstBytes);
  flatten(burst.iovs, flat_.get());
  std::span<u8> left(flat_.get(), burst.bytes);
  Burst single = burst;
  single.segments = 1;
  while (!left.empty()) {
    const std::span<u8> segment =
        left.first(std::min<std::size_t>(burst.segment_size, left.size()));
    left = left.subspan(segment.size());
    if (!burst.is_encapsulated) make_icrc_alone(burst, segment);
    const iovec iov{.iov_base = segment.data(), .iov_len = segment.size()};
    SendMessage message;
    msghdr header{};
    message.set(single, {&iov, 1}, interface_index_, header);
    const bool sent = send_message(burst.port->fd(), header) >= 0 ||
                      (is_full(errno) && wait_for_room(burst.port->fd()) &&
                       send_message(burst.port->fd(), header) >= 0);
    sent ? count_sent(single) : static_cast<void>(++counters_.send_dropped);
  }
}

void UDPSender::count_sent(const Burst& burst) {
  ++counters_.sent_bursts;
  counters_.sent_frames += burst.segments;
  if (!burst.destination.is_multicast() && burst.port->note_sent(burst.destination))
    steady_ = burst.port;
}

}  // namespace verbena::host
