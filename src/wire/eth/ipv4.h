// IPv4 header without options. RFC 791, 3.1. Network order.
//   |Version|  IHL  |    TOS        |          Total Length         |
//   |        Identification         |r|D|M|     Fragment Offset     |
//   |      TTL      |   Protocol    |        Header Checksum        |
//   |                        Source Address                         |
//   |                      Destination Address                      |
// Invariant: decode(encode(h)) == h for valid h. encode() computes the checksum, decode() checks
// it.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/eth/ecn.h"

namespace verbena {

inline constexpr u8 kProtocolTCP = 6;
inline constexpr u8 kProtocolUDP = 17;

struct IPv4Header {
  static constexpr std::size_t kSize = 20;  // bytes
  u8 dscp = 0;                              // 6 bits
  ECN ecn = ECN::kNotECT;
  u16 total_length = kSize;  // bytes, this header included
  u16 identification = 0;
  bool dont_fragment = false, more_fragments = false;
  u16 fragment_offset = 0;  // 13 bits, in units of 8 bytes
  u8 ttl = 64;
  u8 protocol = kProtocolUDP;
  u32 source = 0, destination = 0;  // host order
  constexpr bool is_fragment() const { return more_fragments || fragment_offset != 0; }
  // Returns nullopt if it is short, for Version != 4, options (IHL != 5), total length below 20, a
  // set reserved flag, or a wrong checksum. The caller checks that total_length bytes are there: a
  // link may pad its frames.
  [[nodiscard]] static std::optional<IPv4Header> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const IPv4Header&, const IPv4Header&) = default;
};

}  // namespace verbena
