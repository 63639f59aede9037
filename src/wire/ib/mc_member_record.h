// MCMemberRecord: a port's membership in a multicast group. IBTA Vol 1, 15.2.5.17. Network order.
//   bytes  0 MGID | 16 PortGID | 32 Q_Key | 36 MLID | 38 MTUSelector, MTU | 39 TClass | 40 P_Key
//         42 RateSelector, Rate | 43 lifetime | 44 SL (4), FlowLabel (20), HopLimit (8)
//         48 Scope (4), JoinState (4) | 49 ProxyJoin (1)
// Invariant: decode(encode(r)) == r where `sl` and the scopes have 4 bits, FlowLabel has 20.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena {

struct MCMemberRecord {
  static constexpr std::size_t kSize = 52;  // bytes
  // Bits of the ComponentMask.
  static constexpr u64 kMGID = 1u << 0, kPortGID = 1u << 1, kQKey = 1u << 2, kTClass = 1u << 6,
                       kPKey = 1u << 7, kSL = 1u << 12, kFlowLabel = 1u << 13,
                       kJoinState = 1u << 16;
  static constexpr u8 kFullMember = 1, kSendOnlyMember = 8;

  GID mgid{}, port_gid{};
  u32 q_key = 0;
  u16 mlid = 0;
  u8 mtu = 0;  // code, with selector
  u8 traffic_class = 0;
  u16 p_key = 0;
  u8 rate = 0, packet_lifetime = 0;  // codes, with selectors
  u8 sl = 0;
  u32 flow_label = 0;
  u8 hop_limit = 0;
  u8 scope = 0, join_state = 0;

  // Returns nullopt on a short buffer.
  [[nodiscard]] static std::optional<MCMemberRecord> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const MCMemberRecord&, const MCMemberRecord&) = default;
};

}  // namespace verbena
