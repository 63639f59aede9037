#include "host/network/gid_table.h"

namespace verbena::host {

std::vector<GIDEntry> gid_table(const LocalAddress& address, LinkKind link) {
  const GID ipv6 = address.ipv6 ? *address.ipv6 : *address.ipv4;
  const GID ipv4 = address.ipv4 ? *address.ipv4 : *address.ipv6;
  const GIDType even =
      link == LinkKind::kUDP || link == LinkKind::kIWARP ? GIDType::kRoCEv2 : GIDType::kRoCEv1;
  std::vector<GIDEntry> table = {{ipv6, even}, {ipv6}, {ipv4, even}, {ipv4}};
  for (const GID& other : address.others) table.push_back({other});
  return table;
}

}  // namespace verbena::host
