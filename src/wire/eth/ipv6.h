// IPv6 header. RFC 8200, 3. Network order. (Between LRH and BTH the same 40 bytes are a GRH.)
//   |Version| Traffic Class |           Flow Label                  |
//   |         Payload Length        |  Next Header  |   Hop Limit   |
//   |                     Source Address (128)                      |
//   |                   Destination Address (128)                   |
// Invariant: decode(encode(h)) == h for valid h.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/eth/ecn.h"
#include "wire/eth/ipv4.h"
#include "wire/ib/gid.h"

namespace verbena {

struct IPv6Header {
  static constexpr std::size_t kSize = 40;  // bytes
  u8 dscp = 0;                              // 6 bits
  ECN ecn = ECN::kNotECT;
  u32 flow_label = 0;      // 20 bits
  u16 payload_length = 0;  // bytes behind this header
  u8 next_header = kProtocolUDP;
  u8 hop_limit = 64;
  GID source{}, destination{};
  // Returns nullopt if it is short, or for another Version.
  [[nodiscard]] static std::optional<IPv6Header> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const IPv6Header&, const IPv6Header&) = default;
};

}  // namespace verbena
