#include "wire/roce/v2_packet.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "wire/eth/ipv4.h"
#include "wire/eth/ipv6.h"
#include "wire/eth/udp.h"

namespace verbena {
namespace {

std::size_t udp_length_of(std::size_t transport_size) {
  return UDPHeader::kSize + transport_size + kICRCSize;
}

IPv4Header ipv4_header_of(const RoCEv2Envelope& e, const RoCEv2MaskedFields& m,
                          std::size_t transport_size) {
  CHECK(transport_size <= kMaxTransportSize);
  return {.dscp = m.dscp,
          .ecn = m.ecn,
          .total_length = static_cast<u16>(IPv4Header::kSize + udp_length_of(transport_size)),
          .identification = e.identification,
          .dont_fragment = e.dont_fragment,
          .ttl = m.hop_limit,
          .protocol = kProtocolUDP,
          .source = e.source.ipv4(),
          .destination = e.destination.ipv4()};
}

IPv6Header ipv6_header_of(const RoCEv2Envelope& e, const RoCEv2MaskedFields& m,
                          std::size_t transport_size) {
  CHECK(transport_size <= kMaxTransportSize);
  return {.dscp = m.dscp,
          .ecn = m.ecn,
          .flow_label = m.flow_label,
          .payload_length = static_cast<u16>(udp_length_of(transport_size)),
          .next_header = kProtocolUDP,
          .hop_limit = m.hop_limit,
          .source = e.source,
          .destination = e.destination};
}

UDPHeader udp_header_of(const RoCEv2Envelope& e, const RoCEv2MaskedFields& m,
                        std::size_t transport_size) {
  return {.source_port = e.udp_source_port,
          .destination_port = e.udp_destination_port,
          .length = static_cast<u16>(udp_length_of(transport_size)),
          .checksum = m.udp_checksum};
}

// Reads the IPv4 header into `view`. Returns the bytes behind it, none if it is not for us.
std::optional<std::span<const u8>> decode_ipv4(std::span<const u8> in, RoCEv2View& view) {
  const std::optional<IPv4Header> ip = IPv4Header::decode(in);
  if (!ip || ip->is_fragment() || ip->protocol != kProtocolUDP) return std::nullopt;
  if (in.size() < ip->total_length) return std::nullopt;
  view.envelope.source = GID::from_ipv4(ip->source);
  view.envelope.destination = GID::from_ipv4(ip->destination);
  view.envelope.identification = ip->identification;
  view.envelope.dont_fragment = ip->dont_fragment;
  view.masked = {.dscp = ip->dscp, .ecn = ip->ecn, .hop_limit = ip->ttl};
  return in.subspan(IPv4Header::kSize, ip->total_length - IPv4Header::kSize);
}

std::optional<std::span<const u8>> decode_ipv6(std::span<const u8> in, RoCEv2View& view) {
  const std::optional<IPv6Header> ip = IPv6Header::decode(in);
  if (!ip || ip->next_header != kProtocolUDP) return std::nullopt;
  if (in.size() - IPv6Header::kSize < ip->payload_length) return std::nullopt;
  // An IPv4-mapped address never appears on the wire (RFC 4291, 2.5.5.2), and would mean IPv4 here.
  if (ip->source.is_ipv4() || ip->destination.is_ipv4()) return std::nullopt;
  view.envelope.source = ip->source;
  view.envelope.destination = ip->destination;
  view.masked = {
      .dscp = ip->dscp, .ecn = ip->ecn, .hop_limit = ip->hop_limit, .flow_label = ip->flow_label};
  return in.subspan(IPv6Header::kSize, ip->payload_length);
}

std::optional<std::span<const u8>> decode_ip(std::span<const u8> in, RoCEv2View& view) {
  if (in.empty()) return std::nullopt;
  return in[0] >> 4 == 4 ? decode_ipv4(in, view) : decode_ipv6(in, view);
}

}  // namespace

std::size_t envelope_size(const RoCEv2Envelope& envelope) {
  return UDPHeader::kSize + (envelope.source.is_ipv4() ? IPv4Header::kSize : IPv6Header::kSize);
}

void encode_envelope(const RoCEv2Envelope& envelope, const RoCEv2MaskedFields& masked,
                     std::size_t transport_size, std::span<u8> out) {
  CHECK(out.size() >= envelope_size(envelope));
  const UDPHeader udp = udp_header_of(envelope, masked, transport_size);
  if (envelope.source.is_ipv4()) {
    ipv4_header_of(envelope, masked, transport_size).encode(out.first<IPv4Header::kSize>());
    udp.encode(out.subspan<IPv4Header::kSize, UDPHeader::kSize>());
  } else {
    ipv6_header_of(envelope, masked, transport_size).encode(out.first<IPv6Header::kSize>());
    udp.encode(out.subspan<IPv6Header::kSize, UDPHeader::kSize>());
  }
}

void encode_receive_grh(const RoCEv2Envelope& envelope, const RoCEv2MaskedFields& masked,
                        std::size_t transport_size, std::span<u8, GRH::kSize> out) {
  if (!envelope.source.is_ipv4()) {
    ipv6_header_of(envelope, masked, transport_size).encode(out);
    return;
  }
  std::ranges::fill(out.first<GRH::kSize - IPv4Header::kSize>(), u8{0});
  ipv4_header_of(envelope, masked, transport_size).encode(out.last<IPv4Header::kSize>());
}

std::optional<RoCEv2View> RoCEv2View::decode(std::span<const u8> in, u16 udp_port) {
  RoCEv2View view;
  const std::optional<std::span<const u8>> datagram = decode_ip(in, view);
  if (!datagram) return std::nullopt;
  const std::optional<UDPHeader> udp = UDPHeader::decode(*datagram);
  if (!udp || udp->destination_port != udp_port) return std::nullopt;
  if (udp->length != datagram->size() || udp->length < udp_length_of(BTH::kSize)) {
    return std::nullopt;
  }
  view.envelope.udp_source_port = udp->source_port;
  view.envelope.udp_destination_port = udp_port;
  view.masked.udp_checksum = udp->checksum;
  const std::size_t transport_size = udp->length - udp_length_of(0);
  if (transport_size > kMaxTransportSize) return std::nullopt;
  view.transport = datagram->subspan(UDPHeader::kSize, transport_size);
  view.icrc = load_icrc(datagram->last<kICRCSize>());
  return view;
}

}  // namespace verbena
