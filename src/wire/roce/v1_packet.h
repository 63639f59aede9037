// One RoCEv1 packet from its GRH on: GRH, transport, ICRC, behind EtherType 0x8915. IBTA Vol 1,
// Annex A16. As in Linux, GIDs are the IP addresses of the ports, IPv4-mapped or IPv6.
#pragma once

#include <optional>
#include <span>

#include "wire/ib/grh.h"
#include "wire/ib/packet.h"

namespace verbena {

struct RoCEv1View {
  GRH grh{};
  std::span<const u8> transport{};  // BTH .. end of pad
  u32 icrc = 0;                     // as received; right if icrc_of_v1(grh, transport) equals it

  // `in`: the bytes behind the Ethernet header; a link's padding at its end is ignored. Returns
  // nullopt if it is short, has no GRH or another next header, or if one GID is IPv4 and the other
  // is not.
  [[nodiscard]] static std::optional<RoCEv1View> decode(std::span<const u8> in);
};

}  // namespace verbena
