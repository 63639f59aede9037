// Path: one end-to-end path as a REQ describes it, primary or alternate, seen from the sender of
// the message. IBTA Vol 1, 12.6.5, table 106. Network order.
//    0                               16                              31
//   |      Local Port LID           |       Remote Port LID         |
//   |                     Local Port GID (128)                      |
//   |                     Remote Port GID (128)                     |
//   |             Flow Label (20)           |  rsvd   | Packet Rate |
//   | Traffic Class |   Hop Limit   |  SL  |S| rsvd  |AckTmo(5)|rsvd|
// S: Subnet Local. Ack timeout: Local ACK Timeout, as in wire/ib/ack_timeout.h. RoCE has no LIDs;
// Linux writes the permissive one if the path has hops.
// Invariant: decode(encode(p)) == p. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena::cm {

inline constexpr u16 kPermissiveLID = 0xffff;

struct Path {
  static constexpr std::size_t kSize = 44;  // bytes
  u16 local_lid = 0, remote_lid = 0;
  GID local_gid{}, remote_gid{};
  u32 flow_label = 0;  // 20 bits
  u8 packet_rate = 0;  // 6 bits; 0: that of the port
  u8 traffic_class = 0;
  u8 hop_limit = 0;
  u8 sl = 0;  // 4 bits
  bool subnet_local = false;
  u8 local_ack_timeout = 0;                                                 // 5 bits
  [[nodiscard]] static std::optional<Path> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const Path&, const Path&) = default;
};

}  // namespace verbena::cm
