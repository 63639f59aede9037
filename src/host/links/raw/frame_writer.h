// Ethernet frames as they leave a raw link: Ethernet, then IP and UDP or the GRH of RoCEv1, then
// the transport packet and its ICRC, or a PSP packet that has them inside. The UDP checksum is 0,
// as cards send it: the ICRC covers more.
#pragma once

#include <optional>
#include <span>

#include "device/port/frame.h"
#include "host/encryption/psp_sender.h"
#include "wire/eth/ethernet.h"
#include "wire/ib/grh.h"
#include "wire/roce/v2_packet.h"

namespace verbena::host {

// Ethernet, a VLAN tag, IPv6 and UDP are the longest.
inline constexpr std::size_t kMaxEnvelopeSize = EthernetHeader::kSize + VLANTag::kSize + 48;

struct EthernetPath {
  MAC source, destination;
  std::optional<u16> vlan{};  // nullopt: no tag
};

[[nodiscard]] constexpr std::size_t ethernet_size_of(const EthernetPath& path) {
  return EthernetHeader::kSize + (path.vlan ? VLANTag::kSize : 0);
}

// Ethernet, IP and UDP headers of `transport_size` bytes, BTH .. end of pad, or of a PSP packet as
// if its last kICRCSize bytes were an ICRC. Their size in bytes.
std::size_t write_v2_headers(const EthernetPath& path, const RoCEv2Envelope& envelope,
                             const RoCEv2MaskedFields& masked, std::size_t transport_size,
                             std::span<u8> out);

// RawSeal: the encryption of a frame that a raw link writes: its sealer, and PSP's UDP port.
struct RawSeal {
  PSPSender* sealer = nullptr;  // nullptr: the frame goes in clear
  u16 udp_port = kRoCEv2Port;
};

// The whole frame, from Ethernet header to ICRC or ICV, with the IPv4 Identification 0. Its size in
// bytes; 0: the payload is not there any more (memory/touch.h), or `out` is too small.
[[nodiscard]] std::size_t write_frame(const EthernetPath& path, const EgressFrame& frame,
                                      const RawSeal& seal, EnvelopeCRC& flow, std::span<u8> out);

}  // namespace verbena::host
