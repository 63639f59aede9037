// Datagram: one management datagram with its addresses, as it is sent by and comes to QP 0 or QP 1.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/types.h"
#include "wire/ib/gid.h"
#include "wire/ib/mad.h"

namespace verbena::management {

struct Datagram {
  static constexpr std::size_t kMaxBytes = 16u << 20;  // of a message that RMPP segments

  u16 slid = 0, dlid = 0;
  u8 service_level = 0;
  u16 p_key_index = 0;
  u32 source_qp = 0, destination_qp = 0;
  u32 q_key = 0;
  std::optional<GID> source_gid;  // with a GRH
  // kMADSize bytes; or, with an active RMPP header, a whole message of any size: headers once.
  std::vector<u8> mad;
  u32 message_bytes = kMADSize;  // of `mad`: with an active RMPP header it may be shorter
};

// A port of a node of the subnet.
struct PortPlace {
  u32 node = 0;
  u8 port = 0;  // 0: a switch's management port
  friend bool operator==(const PortPlace&, const PortPlace&) = default;
};

[[nodiscard]] inline bool is_smp(const Datagram& datagram) {
  const auto mgmt_class = static_cast<MgmtClass>(datagram.mad[1]);
  return mgmt_class == MgmtClass::kSubnLIDRouted || mgmt_class == MgmtClass::kSubnDirectedRoute;
}
// IBTA 13.6.2: RMPPFlags.Active, of the classes that have an RMPP header.
[[nodiscard]] inline bool has_active_rmpp(std::span<const u8> mad) {
  constexpr std::size_t kFlagsAt = 26;
  const auto mgmt_class = static_cast<MgmtClass>(mad[1]);
  const bool has_header = mgmt_class == MgmtClass::kSubnAdm || (mad[1] >= 0x30 && mad[1] <= 0x4f);
  return has_header && (mad[kFlagsAt] & 1) != 0;
}
// IBTA 13.4.5: the R bit, and TrapRepress, which answers a trap.
[[nodiscard]] inline bool is_response(const Datagram& datagram) {
  return (datagram.mad[3] & 0x80) != 0 ||
         static_cast<MADMethod>(datagram.mad[3]) == MADMethod::kTrapRepress;
}

}  // namespace verbena::management
