#include "host/links/raw/xdp_port.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "host/links/raw/xdp_error.h"
#include "host/os/kernel_socket.h"
#include "wire/eth/ethernet.h"

namespace verbena::host {
namespace {

constexpr u32 kMaxQueues = 64;  // each has 12 MiB of memory

// Where the driver does not tell: 1.
u32 receive_queues_of(const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&channels);
  const Descriptor socket = open_kernel_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC);
  if (::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return 1;
  return std::max(channels.combined_count + channels.rx_count, 1u);
}

}  // namespace

Expected<std::unique_ptr<XDPPort>> XDPPort::open(const TakenTraffic& taken,
                                                 const LocalAddress& address,
                                                 LinkCounters& counters) {
  const u32 queues = receive_queues_of(address.interface);
  if (queues > kMaxQueues)
    return failure(ENOTSUP, address.interface + " has " + std::to_string(queues) +
                                " receive queues, and the XDP link serves at most " +
                                std::to_string(kMaxQueues) + ": ethtool -L " + address.interface +
                                " combined " + std::to_string(kMaxQueues));
  const bool fits = address.mtu + EthernetHeader::kSize <= XDPSocket::kReceiveRoom;
  const XDPFrames frames = fits ? XDPFrames::kOneBuffer : XDPFrames::kSeveralBuffers;
  Expected<XDPAttachment> attachment = XDPAttachment::load(taken, queues, frames);
  if (!attachment) return tl::unexpected(attachment.error());
  std::unique_ptr<XDPPort> port(new XDPPort(std::move(*attachment), taken, counters));
  if (Expected<void> opened = port->open_sockets(address, queues, frames); !opened)
    return tl::unexpected(opened.error());
  if (Expected<void> attached = port->attachment_.attach(); !attached)
    return tl::unexpected(attached.error());
  return port;
}

Expected<void> XDPPort::open_sockets(const LocalAddress& address, u32 queues, XDPFrames frames) {
  for (u32 queue = 0; queue < queues; ++queue) {
    Expected<XDPSocket> socket = XDPSocket::open(address.interface_index, queue, frames);
    if (!socket) return tl::unexpected(socket.error());
    if (!attachment_.add_socket(queue, socket->fd())) return xdp_failure("fill its BPF map");
    descriptors_.push_back(socket->fd());
    sockets_.push_back(std::move(*socket));
  }
  return {};
}

void XDPPort::append(const EgressFrame& frame, const MAC& to, PSPSender* sealer) {
  XDPSocket& socket = sockets_.front();
  std::span<u8> room = socket.begin_send();
  if (room.empty()) {
    socket.flush();
    room = socket.begin_send();
  }
  const std::size_t size =
      room.empty() ? 0
                   : write_frame({.source = own_, .destination = to}, frame,
                                 {.sealer = sealer, .udp_port = udp_port_}, flow_, room);
  socket.end_send(size);
  ++(size != 0 ? counters_.sent_frames : counters_.send_dropped);
  if (size == 0) return;
  any_appended_ = true;
  is_urgent_ = is_urgent_ || frame.urgency == Urgency::kNow;
}

void XDPPort::flush() {
  if (!any_appended_) return;
  any_appended_ = is_urgent_ = false;
  sockets_.front().flush();
  ++counters_.sent_bursts;
}

void XDPPort::refill() {
  for (XDPSocket& socket : sockets_) socket.refill();
}

bool XDPPort::receive() {
  refill();
  batch_left_ = kMaxBatch;
  return std::ranges::any_of(sockets_, &XDPSocket::has_received);
}

bool XDPPort::poll_frame(IngressFrame& out) {
  while (!parser_.poll(out)) {
    const std::span<const u8> frame = next_frame();
    if (frame.empty()) {
      refill();  // or the descriptors would be readable still
      return false;
    }
    parser_.open(frame, 0);
  }
  return true;
}

// In turn from each socket that has one.
std::span<const u8> XDPPort::next_frame() {
  for (std::size_t looked = 0; looked < sockets_.size() && batch_left_ != 0; ++looked) {
    XDPSocket& socket = sockets_[polled_++ % sockets_.size()];
    if (!socket.has_received()) continue;
    --batch_left_;
    ++counters_.received_datagrams;
    return socket.poll_frame();
  }
  return {};
}

void XDPPort::close() {
  attachment_.close();
  for (XDPSocket& socket : sockets_) socket.close();
  sockets_.clear();
}

}  // namespace verbena::host
