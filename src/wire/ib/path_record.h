// PathRecord: a path between two ports of a subnet. IBTA Vol 1, 15.2.5.16. Network order.
//   bytes  0 ServiceID | 8 DGID | 24 SGID | 40 DLID | 42 SLID | 44 FlowLabel, HopLimit | 48 TClass
//         49 Reversible (1), NumbPath (7) | 50 P_Key | 52 QoSClass (12), SL (4)
//         54 MTU | 55 Rate | 56 lifetime, each behind a selector of two bits
// Only the components that this project asks for and reads.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena {

struct PathRecord {
  static constexpr std::size_t kSize = 64;  // bytes
  // Bits of the ComponentMask.
  static constexpr u64 kDGID = 1u << 2, kSGID = 1u << 3, kReversible = 1u << 11,
                       kNumbPath = 1u << 12, kPKey = 1u << 13;

  GID dgid{}, sgid{};
  u16 dlid = 0, slid = 0;
  bool reversible = true;
  u8 numb_path = 1;
  u16 p_key = 0;
  u8 sl = 0;
  u8 mtu = 0, rate = 0, packet_lifetime = 0;  // codes; sent with the selector "exactly"

  // Returns nullopt on a short buffer.
  [[nodiscard]] static std::optional<PathRecord> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const PathRecord&, const PathRecord&) = default;
};

}  // namespace verbena
