// UDP header. RFC 768; over IPv6, RFC 8200, 8.1. Network order.
//   | Source Port (16) | Destination Port (16) |
//   |   Length (16)    |     Checksum (16)     |
// Invariant: decode(encode(h)) == h for valid h.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena {

struct UDPHeader {
  static constexpr std::size_t kSize = 8;  // bytes
  u16 source_port = 0, destination_port = 0;
  u16 length = kSize;  // bytes, this header included
  u16 checksum = 0;    // 0: not computed; allowed over IPv4, and by RFC 6935 for tunnels over IPv6
  // Returns nullopt if it is short, or for length < 8.
  [[nodiscard]] static std::optional<UDPHeader> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const UDPHeader&, const UDPHeader&) = default;
};

// Returns the checksum of a datagram between two addresses, both IPv4-mapped or neither; never 0.
// It reads `header.checksum` as 0. Precondition: header.length == 8 + payload.size().
[[nodiscard]] u16 udp_checksum(const GID& source, const GID& destination, const UDPHeader& header,
                               std::span<const u8> payload);

}  // namespace verbena
