#include "host/links/vxlan_stage.h"

#include <algorithm>

#include "wire/roce/v2_packet.h"

namespace verbena::host {
namespace {

// Locally administered (IEEE 802, 8.4), with the last 32 bits of the IP address.
MAC inner_mac_of(const GID& address) {
  MAC mac{{0x02, 0x56}};
  std::ranges::copy(std::span(address.bytes).last<4>(), mac.bytes.begin() + 2);
  return mac;
}

}  // namespace

void VXLANSender::finish(const EgressFrame& frame, u16 udp_source_port, std::span<u8> packet) {
  const std::size_t transport_size = packet.size() - head_bytes() - kICRCSize;
  VXLANHeader{.vni = vni_}.encode(packet.first<VXLANHeader::kSize>());
  EthernetHeader{.destination = inner_mac_of(frame.destination),
                 .source = inner_mac_of(frame.source),
                 .ether_type = frame.destination.is_ipv4() ? EtherType::kIPv4 : EtherType::kIPv6}
      .encode(packet.subspan<VXLANHeader::kSize, EthernetHeader::kSize>());
  encode_envelope({.source = frame.source,
                   .destination = frame.destination,
                   .udp_source_port = udp_source_port},
                  {.dscp = dscp_of(frame.traffic_class),
                   .ecn = ecn_of(frame.traffic_class),
                   .hop_limit = frame.hop_limit},
                  transport_size, packet.subspan(VXLANHeader::kSize + EthernetHeader::kSize));
}

bool VXLANStage::open_frame(IngressFrame& frame, LinkCounters& counters) const {
  const std::optional<VXLANHeader> header = VXLANHeader::decode(frame.transport);
  const Bytes inner = header ? frame.transport.subspan(VXLANHeader::kSize) : Bytes();
  const std::optional<EthernetHeader> ethernet = EthernetHeader::decode(inner);
  const std::optional<RoCEv2View> view =
      ethernet ? RoCEv2View::decode(inner.subspan(EthernetHeader::kSize)) : std::nullopt;
  if (!view || header->vni != vni_ || view->envelope.destination != frame.destination) {
    ++counters.refused_vni;
    return false;
  }
  // A router between the endpoints marks the outer header (RFC 6040, 4.2: the mark counts).
  const u8 outer_ecn = frame.traffic_class & 3;
  frame.source = view->envelope.source;
  frame.udp_source_port = view->envelope.udp_source_port;
  frame.traffic_class = static_cast<u8>(traffic_class_of(view->masked.dscp, view->masked.ecn) |
                                        (outer_ecn == 3 ? 3 : 0));
  frame.hop_limit = view->masked.hop_limit;
  frame.identification_known = true;
  frame.identification = view->envelope.identification;
  frame.transport = {view->transport.data(), view->transport.size() + kICRCSize};
  return true;
}

}  // namespace verbena::host
