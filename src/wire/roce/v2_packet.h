// One RoCEv2 packet from its IP header on: IPv4 or IPv6, UDP, transport, ICRC. Annex A17.3.
// For links that see whole IP packets (raw Ethernet, AF_XDP, captures); a UDP socket needs none of
// it.
#pragma once

#include <optional>
#include <span>

#include "wire/eth/ecn.h"
#include "wire/ib/grh.h"
#include "wire/roce/icrc.h"

namespace verbena {

// The fields of IP and UDP that the ICRC does not cover, because routers may change them.
struct RoCEv2MaskedFields {
  u8 dscp = 0;  // 6 bits
  ECN ecn = ECN::kNotECT;
  u8 hop_limit = 64;     // or TTL
  u32 flow_label = 0;    // IPv6 only, 20 bits
  u16 udp_checksum = 0;  // 0: not computed
  friend bool operator==(const RoCEv2MaskedFields&, const RoCEv2MaskedFields&) = default;
};

// Returns the size of IP and UDP headers in bytes: 28 for IPv4, 48 for IPv6.
[[nodiscard]] std::size_t envelope_size(const RoCEv2Envelope& envelope);

// Writes envelope_size() bytes at the start of `out`. `transport_size` as for ICRC.
void encode_envelope(const RoCEv2Envelope& envelope, const RoCEv2MaskedFields& masked,
                     std::size_t transport_size, std::span<u8> out);

// The 40 bytes before the payload in a UD receive buffer: the IPv6 header, or 20 zeros and the IPv4
// header. Annex A17.4.
void encode_receive_grh(const RoCEv2Envelope& envelope, const RoCEv2MaskedFields& masked,
                        std::size_t transport_size, std::span<u8, GRH::kSize> out);

struct RoCEv2View {
  RoCEv2Envelope envelope{};
  RoCEv2MaskedFields masked{};
  std::span<const u8> transport{};  // BTH .. end of pad
  u32 icrc = 0;                     // as received; right if icrc_of(envelope, transport) equals it

  // `in`: the IP packet; a link's padding behind it is ignored. Returns nullopt if it is short, not
  // IP, has options or extension headers, is a fragment, has a wrong IPv4 checksum, is not UDP to
  // `udp_port`, or if IP and UDP lengths disagree. The UDP checksum is not checked: the ICRC is
  // stronger.
  [[nodiscard]] static std::optional<RoCEv2View> decode(std::span<const u8> in,
                                                        u16 udp_port = kRoCEv2Port);
};

}  // namespace verbena
