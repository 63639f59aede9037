// A LID as the address of a path. Devices know the ends of paths by GIDs; within an InfiniBand
// subnet a packet has none, and goes by its DLID. Such an end has the address 1::LID, a multicast
// group ff00::MLID. No port has these as a GID: 0000::/8 and ff00::/16 are reserved, but for ::1
// and IPv4 addresses. IBTA Vol 1, 4.1.3; RFC 4291, 2.7 and 4.
#pragma once

#include "wire/ib/gid.h"

namespace verbena {

inline constexpr u16 kFirstMulticastLID = 0xc000;

// Returns the zero GID for 0, which is no LID.
[[nodiscard]] constexpr GID address_of_lid(u16 lid) {
  GID address;
  if (lid == 0) return address;
  const bool is_multicast = lid >= kFirstMulticastLID;
  address.bytes[0] = is_multicast ? 0xff : 0;
  address.bytes[1] = is_multicast ? 0 : 1;
  address.bytes[14] = static_cast<u8>(lid >> 8);
  address.bytes[15] = static_cast<u8>(lid);
  return address;
}
// Returns 0 if it is no such address.
[[nodiscard]] constexpr u16 lid_of_address(const GID& address) {
  const auto lid = static_cast<u16>(address.bytes[14] << 8 | address.bytes[15]);
  return address == address_of_lid(lid) ? lid : u16{0};
}

// Paths of a subnet have a service level and no traffic class: it stands in its upper bits.
[[nodiscard]] constexpr u8 traffic_class_of_sl(u8 service_level) {
  return static_cast<u8>(service_level << 4);
}
[[nodiscard]] constexpr u8 sl_of_traffic_class(u8 traffic_class) { return traffic_class >> 4; }

}  // namespace verbena
