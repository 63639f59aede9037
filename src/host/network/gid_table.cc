#include "host/network/gid_table.h"

namespace verbena::host {

std::vector<GIDEntry> gid_table(const LocalAddress& address, LinkKind link, OnWire on_wire) {
  const GID ipv6 = address.ipv6 ? *address.ipv6 : *address.ipv4;
  const GID ipv4 = address.ipv4 ? *address.ipv4 : *address.ipv6;
  const bool has_v1 = link == LinkKind::kPacket || link == LinkKind::kXDP;
  const GIDType even = has_v1 && on_wire == OnWire::kClear ? GIDType::kRoCEv1 : GIDType::kRoCEv2;
  std::vector<GIDEntry> table = {{ipv6, even}, {ipv6}, {ipv4, even}, {ipv4}};
  for (const GID& other : address.others) table.push_back({other});
  return table;
}

}  // namespace verbena::host
