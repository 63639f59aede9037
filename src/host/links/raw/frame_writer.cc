#include "host/links/raw/frame_writer.h"

#include "host/links/frame_codec.h"
#include "memory/touch.h"

namespace verbena::host {
namespace {

// A tag has the priority that the DSCP's class selector names (RFC 2474, 4.2.2), which is what PFC
// pauses in networks that trust tags.
std::size_t write_ethernet(const EthernetPath& path, EtherType type, u8 dscp, std::span<u8> out) {
  EthernetHeader{.destination = path.destination,
                 .source = path.source,
                 .ether_type = path.vlan ? EtherType::kVLAN : type}
      .encode(out.first<EthernetHeader::kSize>());
  if (path.vlan)
    VLANTag{.priority = static_cast<u8>(dscp >> 3), .vlan_id = *path.vlan, .ether_type = type}
        .encode(out.subspan<EthernetHeader::kSize, VLANTag::kSize>());
  return ethernet_size_of(path);
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

std::size_t write_headers(const EthernetPath& path, const EgressFrame& frame, const RawSeal& seal,
                          std::span<u8> out) {
  if (frame.type == GIDType::kRoCEv2) {
    const std::size_t overhead = seal.sealer == nullptr ? 0 : seal.sealer->overhead();
    RoCEv2Envelope outer = envelope_of(frame);
    outer.udp_destination_port = seal.udp_port;
    return write_v2_headers(path, outer,
                            {.dscp = dscp_of(frame.traffic_class),
                             .ecn = ecn_of(frame.traffic_class),
                             .hop_limit = frame.hop_limit},
                            frame.transport_size() + overhead, out);
  }
  const std::size_t ethernet_size =
      write_ethernet(path, EtherType::kRoCEv1, dscp_of(frame.traffic_class), out);
  grh_of(frame).encode(out.subspan<EthernetHeader::kSize, GRH::kSize>());
  return ethernet_size + GRH::kSize;
}

u32 crc_before(const EgressFrame& frame, EnvelopeCRC& flow) {
  return frame.type == GIDType::kRoCEv1 ? crc_behind(grh_of(frame))
                                        : flow.of(envelope_of(frame), frame.transport_size());
}

}  // namespace

std::size_t write_v2_headers(const EthernetPath& path, const RoCEv2Envelope& envelope,
                             const RoCEv2MaskedFields& masked, std::size_t transport_size,
                             std::span<u8> out) {
  const EtherType type = envelope.source.is_ipv4() ? EtherType::kIPv4 : EtherType::kIPv6;
  const std::size_t ethernet_size = write_ethernet(path, type, masked.dscp, out);
  encode_envelope(envelope, masked, transport_size, out.subspan(ethernet_size));
  return ethernet_size + envelope_size(envelope);
}

std::size_t write_frame(const EthernetPath& path, const EgressFrame& frame, const RawSeal& seal,
                        EnvelopeCRC& flow, std::span<u8> out) {
  if (out.size() < kMaxEnvelopeSize + encoded_room(frame.transport_size(), seal.sealer)) return 0;
  const std::size_t headers_size = write_headers(path, frame, seal, out);
  u8* const begin = out.data() + headers_size;
  const ICRC icrc(crc_before(frame, flow));
  OnePieceSink sink;
  const bool is_there = touch([&] {
    if (seal.sealer == nullptr)
      encode_frame(frame, 0, icrc, begin, sink);
    else
      sink.take(encode_encapsulated(frame, 0, icrc, *seal.sealer, frame.udp_source_port, begin));
  });
  return is_there ? headers_size + sink.size : 0;
}

}  // namespace verbena::host
