// VXLANStage: RoCEv2 of one virtual network in VXLAN (RFC 7348), as a stage of a UDP link: outer
// UDP 4789, VXLAN header, inner Ethernet, IP and UDP 4791. The device's address is both the inner
// address and that of the tunnel's endpoint. Packets of other networks are refused. Inner MAC
// addresses are made of the IP addresses, since no switch looks at them.
#pragma once

#include "host/links/encapsulation.h"
#include "host/links/link.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"
#include "wire/eth/vxlan.h"

namespace verbena::host {

// Bytes between outer UDP header and BTH.
inline constexpr std::size_t kVXLANHeadOverIPv4 =
    VXLANHeader::kSize + EthernetHeader::kSize + IPv4Header::kSize + UDPHeader::kSize;
inline constexpr std::size_t kVXLANHeadOverIPv6 =
    VXLANHeader::kSize + EthernetHeader::kSize + IPv6Header::kSize + UDPHeader::kSize;
// The most that VXLAN adds to a RoCEv2 packet: IP and UDP headers are there twice.
inline constexpr u32 kVXLANOverheadBytes = kVXLANHeadOverIPv6;

class VXLANSender final : public Encapsulation {
 public:
  VXLANSender(u32 vni, std::size_t head_bytes) : Encapsulation(head_bytes, 0), vni_(vni) {}
  void finish(const EgressFrame& frame, u16 udp_source_port, std::span<u8> packet) override;

 private:
  u32 vni_;
};

class VXLANStage {
 public:
  explicit VXLANStage(u32 vni)
      : vni_(vni), over_ipv4_(vni, kVXLANHeadOverIPv4), over_ipv6_(vni, kVXLANHeadOverIPv6) {}

  [[nodiscard]] Encapsulation* sender_for(const EgressFrame& frame) {
    return frame.destination.is_ipv4() ? &over_ipv4_ : &over_ipv6_;
  }
  // Replaces the frame by the packet inside. Returns false if it is not of this network; then it is
  // counted.
  [[nodiscard]] bool open_frame(IngressFrame& frame, LinkCounters& counters) const;

 private:
  u32 vni_;
  VXLANSender over_ipv4_, over_ipv6_;
};

}  // namespace verbena::host
