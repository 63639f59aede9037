// LinkRate: the InfiniBand width and speed that a port names for an Ethernet link, as Linux does
// for RoCE. IBTA Vol 1, 14.2.5.6 (PortInfo: LinkWidthActive, LinkSpeedActive).
#pragma once

#include <string>

#include "base/types.h"

namespace verbena::host {

struct LinkRate {
  u8 width, speed;  // as PortInfo codes them
  // As sysfs has it: "100 Gb/sec (4X EDR)".
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const LinkRate&, const LinkRate&) = default;
};

// Returns the speed of the link, or a default if the link does not report its speed (0).
[[nodiscard]] u64 speed_or_default_mbps(u64 link_speed_mbps);

// The least rate that carries the link, or the greatest there is.
[[nodiscard]] LinkRate rate_for(u64 link_speed_mbps);

}  // namespace verbena::host
