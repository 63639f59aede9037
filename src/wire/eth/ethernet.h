// Ethernet II header and the 802.1Q tag that may follow it. IEEE 802.3, 3.1.1; 802.1Q, 9.6.
//   | Destination (48) | Source (48) | EtherType (16) |
//   tag, behind an EtherType of 0x8100:  | PCP (3) | DEI (1) | VID (12) | EtherType (16) |
// The frame check sequence is the link's own and never appears here. Network order.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

enum class EtherType : u16 {  // an open set: other values are legal and not ours
  kIPv4 = 0x0800,
  kARP = 0x0806,
  kVLAN = 0x8100,
  kIPv6 = 0x86dd,
  kMACControl = 0x8808,  // PAUSE and PFC
  kRoCEv1 = 0x8915,
};

struct MAC {
  std::array<u8, 6> bytes{};
  constexpr bool is_multicast() const { return (bytes[0] & 1) != 0; }
  friend constexpr bool operator==(const MAC&, const MAC&) = default;
};

struct EthernetHeader {
  static constexpr std::size_t kSize = 14;  // bytes
  MAC destination{}, source{};
  EtherType ether_type = EtherType::kIPv4;
  // Returns nullopt if it is short.
  [[nodiscard]] static std::optional<EthernetHeader> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const EthernetHeader&, const EthernetHeader&) = default;
};

struct VLANTag {
  static constexpr std::size_t kSize = 4;  // bytes
  u8 priority = 0;                         // PCP, 0..7: the priority that PFC pauses
  bool drop_eligible = false;
  u16 vlan_id = 0;                          // 0..4095; 0: priority only
  EtherType ether_type = EtherType::kIPv4;  // of the next header
  [[nodiscard]] static std::optional<VLANTag> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const VLANTag&, const VLANTag&) = default;
};

}  // namespace verbena
