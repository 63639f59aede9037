#include "host/links/raw/frame_writer.h"

#include "host/links/transport_bytes.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

std::size_t write_ethernet(const EthernetPath& path, EtherType type, std::span<u8> out) {
  EthernetHeader{.destination = path.destination, .source = path.source, .ether_type = type}.encode(
      out.first<EthernetHeader::kSize>());
  return EthernetHeader::kSize;
}

GRH grh_of(const EgressFrame& frame) {
  return {.traffic_class = frame.traffic_class,
          .payload_length = static_cast<u16>(frame.transport_size() + kICRCSize),
          .hop_limit = frame.hop_limit,
          .sgid = frame.source,
          .dgid = frame.destination};
}

RoCEv2Envelope envelope_of(const EgressFrame& frame) {
  return {.source = frame.source,
          .destination = frame.destination,
          .udp_source_port = frame.udp_source_port};
}

std::size_t write_headers(const EthernetPath& path, const EgressFrame& frame, std::span<u8> out) {
  if (frame.type == GIDType::kRoCEv2)
    return write_v2_headers(path, envelope_of(frame),
                            {.dscp = dscp_of(frame.traffic_class),
                             .ecn = ecn_of(frame.traffic_class),
                             .hop_limit = frame.hop_limit},
                            frame.transport_size(), out);
  const std::size_t ethernet_size = write_ethernet(path, EtherType::kRoCEv1, out);
  grh_of(frame).encode(out.subspan<EthernetHeader::kSize, GRH::kSize>());
  return ethernet_size + GRH::kSize;
}

u32 icrc_for(const EgressFrame& frame, std::span<const u8> transport) {
  return frame.type == GIDType::kRoCEv1 ? icrc_of_v1(grh_of(frame), transport)
                                        : icrc_of(envelope_of(frame), transport);
}

}  // namespace

std::size_t write_v2_headers(const EthernetPath& path, const RoCEv2Envelope& envelope,
                             const RoCEv2MaskedFields& masked, std::size_t transport_size,
                             std::span<u8> out) {
  const EtherType type = envelope.source.is_ipv4() ? EtherType::kIPv4 : EtherType::kIPv6;
  const std::size_t ethernet_size = write_ethernet(path, type, out);
  encode_envelope(envelope, masked, transport_size, out.subspan(ethernet_size));
  return ethernet_size + envelope_size(envelope);
}

std::size_t write_frame(const EthernetPath& path, const EgressFrame& frame, std::span<u8> out) {
  const std::size_t transport_size = frame.transport_size();
  if (out.size() < kMaxEnvelopeSize + transport_size + kICRCSize) return 0;
  const std::size_t headers_size = write_headers(path, frame, out);
  const std::span<u8> transport = out.subspan(headers_size, transport_size);
  if (!touch([&] { (void)write_transport(frame, 0, transport.data()); })) return 0;
  store_icrc(icrc_for(frame, transport) ^ frame.icrc_flip,
             std::span<u8, kICRCSize>(transport.data() + transport_size, kICRCSize));
  return headers_size + transport_size + kICRCSize;
}

}  // namespace verbena::host
