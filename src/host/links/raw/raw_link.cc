#include "host/links/raw/raw_link.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "host/links/quiet_sources.h"
#include "host/links/raw/interface_mac.h"
#include "host/links/raw/packet_port.h"
#include "host/links/raw/take_filter.h"
#include "host/links/raw/xdp_port.h"

namespace verbena::host {
namespace {

Expected<std::unique_ptr<RawPort>> port_of(LinkKind kind, const TakenTraffic& taken,
                                           const LocalAddress& address, LinkCounters& counters) {
  switch (kind) {
    case LinkKind::kUDP:
    case LinkKind::kIWARP: break;
    case LinkKind::kPacket: return PacketPort::open(taken, address.mtu, counters);
    case LinkKind::kXDP: return XDPPort::open(taken, address, counters);
  }
  CHECK_UNREACHABLE();
}

}  // namespace

Expected<std::unique_ptr<Link>> RawLink::on(std::unique_ptr<UDPLink> link,
                                            const LocalAddress& address, LinkKind kind) {
  if (kind == LinkKind::kUDP) return link;
  std::unique_ptr<RawLink> raw(new RawLink(std::move(link), address.interface_index));
  if (Expected<void> opened = raw->open_port(address, kind); !opened)
    return tl::unexpected(opened.error());
  return raw;
}

std::unique_ptr<Link> RawLink::on_shared(std::unique_ptr<UDPLink> link, const LocalAddress& address,
                                         std::unique_ptr<RawPort> port) {
  std::unique_ptr<RawLink> raw(new RawLink(std::move(link), address.interface_index));
  raw->use(std::move(port));
  return raw;
}

Expected<void> RawLink::open_port(const LocalAddress& address, LinkKind kind) {
  const Expected<MAC> mac = interface_mac(address);
  if (!mac) return tl::unexpected(mac.error());
  const TakenTraffic taken{.addresses = address.all(),
                           .slot = below_->slot(),
                           .interface_index = address.interface_index,
                           .mac = *mac,
                           .udp_port = below_->udp_port(),
                           .steer_by = below_->steered_by()};
  Expected<std::unique_ptr<RawPort>> port = port_of(kind, taken, address, own_);
  if (!port) return tl::unexpected(port.error());
  use(std::move(*port));
  for (const int fd : below_->receivers())
    if (!attach_filter(fd, leave_filter(taken)))
      return failure(errno, std::string("cannot attach a BPF filter to a UDP socket: ") +
                                std::strerror(errno));
  return {};
}

void RawLink::append(const EgressFrame& frame) {
  if (has_left()) return;
  const Neighbours::Route& route = route_of(frame);
  frame.type == GIDType::kRoCEv1 ? append_v1(frame, route) : append_v2(frame, route);
}

void RawLink::append_v2(const EgressFrame& frame, const Neighbours::Route& route) {
  switch (route.way) {
    case Neighbours::Way::kNeighbour:
    case Neighbours::Way::kRouter: return append_to_neighbour(frame, *route.mac);
    case Neighbours::Way::kThisHost:
    case Neighbours::Way::kKernel:
    case Neighbours::Way::kUnsettled: return below_->append(frame);
  }
  CHECK_UNREACHABLE();
}

// A frame whose association has no key yet is held, and the link below sends it later.
void RawLink::append_to_neighbour(const EgressFrame& frame, const MAC& to) {
  if (!below_->encrypts()) return port_->append(frame, to, nullptr);
  if (PSPSender* const sealer = below_->sealer_for(frame)) port_->append(frame, to, sealer);
}

// Frames one by one.
void RawLink::append_v1(const EgressFrame& frame, const Neighbours::Route& route) {
  if (below_->encrypts()) {
    own_.send_dropped += frame.packets;
    return;
  }
  switch (route.way) {
    case Neighbours::Way::kThisHost: return below_->append(frame);
    case Neighbours::Way::kUnsettled: ask_for(frame); break;
    case Neighbours::Way::kNeighbour: break;
    case Neighbours::Way::kRouter:
    case Neighbours::Way::kKernel: own_.send_dropped += frame.packets; return;
  }
  if (!route.mac) {
    own_.send_dropped += frame.packets;
    return;
  }
  for (u32 i = 0; i < frame.packets; ++i) port_->append(frame.frame_of(i), *route.mac, nullptr);
}

void RawLink::flush() {
  end_burst();
  if (has_left()) return;
  port_->flush();
  below_->flush();
}

bool RawLink::receive(Look look) {
  if (has_left()) return false;
  bool any = port_->receive();
  const bool looks_below = look == Look::kEverywhere || below_quiet_rounds_ < kQuietAfter ||
                           ++round_ % kLookInterval == 0;
  if (!looks_below) return any;
  const bool below_gave = below_->receive(look);
  below_quiet_rounds_ = below_gave ? 0 : below_quiet_rounds_ + 1;
  return any || below_gave;
}

bool RawLink::poll_frame(IngressFrame& out, Time now) {
  while (port_->poll_frame(out)) {
    if (below_->encrypts() && !below_->open_raw(out, now)) continue;
    ++own_.received_frames;
    return true;
  }
  return below_->poll_frame(out, now);
}

}  // namespace verbena::host
