// VLANLink: RoCEv2 of one VLAN (IEEE 802.1Q) on the interface of a device, by an AF_PACKET socket
// that writes the tag and takes frames with it alone. It stands on a UDPLink for the slot of the
// QPNs and for QP 1, which programs on one address share. Nothing goes without the tag: not to this
// host, not by a route that leaves on another interface, not while a neighbour's MAC address is
// unknown. The kernel asks for MAC addresses without a tag; where that reaches no neighbour, `ip
// neighbour add` enters one.
#pragma once

#include <memory>

#include "host/links/raw/packet_port.h"
#include "host/links/raw/port_link.h"

namespace verbena::host {

class VLANLink final : public PortLink {
 public:
  // `below`: of UDPLink::open_for_vlan().
  [[nodiscard]] static Expected<std::unique_ptr<VLANLink>> on(std::unique_ptr<UDPLink> below,
                                                              const LocalAddress& address,
                                                              u16 vlan);

  [[nodiscard]] UDPLink& below() { return *below_; }
  [[nodiscard]] u32 receive_buffer_bytes() const { return packets_->receive_buffer_bytes(); }
  // Takes packets to QP 1 from now on. One link of each address does.
  void take_management();

  void append(const EgressFrame& frame) override;
  void flush() override;
  [[nodiscard]] bool may_wait() const override { return port_->may_wait(); }
  [[nodiscard]] bool receive(Look look) override;
  [[nodiscard]] bool poll_frame(IngressFrame& out, Time now) override;

 private:
  using PortLink::PortLink;
  // Returns nullptr if the frame does not go in this VLAN, or not yet.
  [[nodiscard]] const MAC* next_hop_of(const EgressFrame& frame);

  TakenTraffic taken_;
  PacketPort* packets_ = nullptr;  // the port
};

}  // namespace verbena::host
