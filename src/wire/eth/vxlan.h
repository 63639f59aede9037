// VXLAN header: an Ethernet frame of a virtual network in UDP to port 4789. RFC 7348, 5. Network
// order. The inner frame follows, from its Ethernet header on, without a frame check sequence.
//   |R R R R I R R R|            Reserved (24)            |
//   |                VNI (24)               | Reserved (8) |
// Invariant: decode(encode(h)) == h. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/bytes.h"

namespace verbena {

inline constexpr u16 kVXLANPort = 4789;  // UDP destination port
inline constexpr u32 kMaxVNI = 0xffffff;

struct VXLANHeader {
  static constexpr std::size_t kSize = 8;  // bytes
  static constexpr u8 kHasVNI = 0x08;      // I
  u32 vni = 0;                             // 24 bits

  // Returns nullopt if it is short, or has no VNI.
  [[nodiscard]] static std::optional<VXLANHeader> decode(std::span<const u8> in) {
    if (in.size() < kSize) return std::nullopt;
    const Reader<kSize> r(in.first<kSize>());
    if ((r.get8<0>() & kHasVNI) == 0) return std::nullopt;
    return VXLANHeader{.vni = r.get24<4>()};
  }
  void encode(std::span<u8, kSize> out) const {
    Writer<kSize> w(out);
    w.put32<0>(u32{kHasVNI} << 24);
    w.put24<4>(vni);
    w.put8<7>(0);
  }
  friend bool operator==(const VXLANHeader&, const VXLANHeader&) = default;
};

}  // namespace verbena
