// GRH: Global Route Header: an IPv6 header between LRH (or Ethernet, in RoCEv1) and BTH. It also
// lies before the payload in every UD receive buffer. IBTA Vol 1, 8.3. Network order.
//   |IPVer(4)| TClass (8) |      FlowLabel (20)     |
//   |        PayLen (16)         | NxtHdr(8) | HopLmt(8) |
//   |                   SGID (128)                  |
//   |                   DGID (128)                  |
// Invariant: decode(encode(h)) == h for valid h.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/gid.h"

namespace verbena {

inline constexpr u8 kNextHeaderIBA = 0x1b;  // an IBA transport packet follows

struct GRH {
  static constexpr std::size_t kSize = 40;  // bytes
  u8 traffic_class = 0;
  u32 flow_label = 0;      // at most kMaxFlowLabel
  u16 payload_length = 0;  // bytes from behind the GRH to the end of ICRC
  u8 next_header = kNextHeaderIBA;
  u8 hop_limit = 0;
  GID sgid{}, dgid{};
  // Returns nullopt on a short buffer or IPVer != 6.
  [[nodiscard]] static std::optional<GRH> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const GRH&, const GRH&) = default;
};

}  // namespace verbena
