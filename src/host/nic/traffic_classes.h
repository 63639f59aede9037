// The traffic classes of a virtual function. A packet of a higher class goes before the waiting
// packets of lower classes, of all programs of the function. The DSCP of a packet (RFC 2474) says
// its class.
#pragma once

#include <array>
#include <cstddef>

#include "base/types.h"
#include "wire/eth/ecn.h"

namespace verbena::host {

inline constexpr u32 kTrafficClasses = 8;
inline constexpr std::size_t kDSCPs = 64;

using ClassOfDSCP = std::array<u8, kDSCPs>;

// The upper half of the DSCP, which is also the priority of a frame in a VLAN: CS0 to CS7 are the
// classes 0 to 7 (RFC 2474, 4.2.2.1).
constexpr ClassOfDSCP class_selectors() {
  ClassOfDSCP out{};
  for (std::size_t dscp = 0; dscp < kDSCPs; ++dscp) out[dscp] = static_cast<u8>(dscp >> 3);
  return out;
}

struct TrafficClasses {
  ClassOfDSCP of_dscp = class_selectors();
  std::array<u64, kTrafficClasses> max_bps{};  // 0: no limit but the function's
  // `traffic_class`: the byte of the IP header, DSCP and ECN.
  [[nodiscard]] u32 class_of(u8 traffic_class) const { return of_dscp[dscp_of(traffic_class)]; }
  friend bool operator==(const TrafficClasses&, const TrafficClasses&) = default;
};

}  // namespace verbena::host
