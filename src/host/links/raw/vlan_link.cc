#include "host/links/raw/vlan_link.h"

#include <utility>

#include "base/check.h"
#include "host/links/raw/interface_mac.h"

namespace verbena::host {

Expected<std::unique_ptr<VLANLink>> VLANLink::on(std::unique_ptr<UDPLink> below,
                                                 const LocalAddress& address, u16 vlan) {
  const Expected<MAC> mac = interface_mac(address);
  if (!mac) return tl::unexpected(mac.error());
  std::unique_ptr<VLANLink> link(new VLANLink(std::move(below), address.interface_index));
  link->taken_ = {.addresses = address.all(),
                  .slot = link->below_->slot(),
                  .interface_index = address.interface_index,
                  .mac = *mac,
                  .vlan = vlan};
  Expected<std::unique_ptr<PacketPort>> port =
      PacketPort::open(link->taken_, address.mtu, link->own_);
  if (!port) return tl::unexpected(port.error());
  link->packets_ = port->get();
  link->use(std::move(*port));
  return link;
}

void VLANLink::take_management() {
  if (std::exchange(taken_.takes_management, true)) return;
  if (!packets_->retake(taken_))
    taken_.takes_management = false;  // tried again for the next program
}

const MAC* VLANLink::next_hop_of(const EgressFrame& frame) {
  if (frame.type != GIDType::kRoCEv2) return nullptr;
  const Neighbours::Route& route = route_of(frame);
  switch (route.way) {
    case Neighbours::Way::kUnsettled: ask_for(frame); return route.mac ? &*route.mac : nullptr;
    case Neighbours::Way::kNeighbour:
    case Neighbours::Way::kRouter: return &*route.mac;
    case Neighbours::Way::kThisHost:
    case Neighbours::Way::kKernel: return nullptr;
  }
  CHECK_UNREACHABLE();
}

void VLANLink::append(const EgressFrame& frame) {
  if (has_left()) return;
  const MAC* const to = next_hop_of(frame);
  if (to == nullptr)
    own_.send_dropped += frame.packets;
  else
    port_->append(frame, *to, nullptr);
}

void VLANLink::flush() {
  end_burst();
  if (!has_left()) port_->flush();
}

bool VLANLink::receive(Look look) {
  if (has_left()) return false;
  const bool came = port_->receive();
  return below_->receive(look) || came;
}

bool VLANLink::poll_frame(IngressFrame& out, Time now) {
  while (port_->poll_frame(out)) {
    if (!below_->is_for_our_device(out, now)) continue;
    ++own_.received_frames;
    return true;
  }
  return below_->poll_frame(out, now);
}

}  // namespace verbena::host
