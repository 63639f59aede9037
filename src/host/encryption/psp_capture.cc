#include "host/encryption/psp_capture.h"

#include "host/os/clock.h"
#include "wire/eth/ethernet.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"
#include "wire/roce/v2_packet.h"

namespace verbena::host {

void PSPCapture::add(const AssociationEnds& ends, u16 udp_source_port, std::span<const u8> packet,
                     pcapng::PacketDirection direction) {
  if (packet.size() < kICRCSize || packet.size() - kICRCSize > kMaxTransportSize) return;
  std::array<u8, EthernetHeader::kSize + IPv6Header::kSize + UDPHeader::kSize> headers{};
  const RoCEv2Envelope envelope{.source = ends.sender,
                                .destination = ends.receiver,
                                .udp_source_port = udp_source_port,
                                .udp_destination_port = udp_port_};
  EthernetHeader{.destination = CaptureFile::mac_of(ends.receiver),
                 .source = CaptureFile::mac_of(ends.sender),
                 .ether_type = ends.sender.is_ipv4() ? EtherType::kIPv4 : EtherType::kIPv6}
      .encode(std::span(headers).first<EthernetHeader::kSize>());
  // Sizes of IP and UDP count four bytes behind the transport packet: an ICRC in RoCEv2.
  encode_envelope(envelope, {}, packet.size() - kICRCSize,
                  std::span(headers).subspan<EthernetHeader::kSize>());
  const std::size_t size = EthernetHeader::kSize + envelope_size(envelope);
  const std::array<std::span<const u8>, 2> parts{std::span<const u8>(headers).first(size), packet};
  file_.add_packet(interface_, parts, direction, monotonic_now());
}

}  // namespace verbena::host
