// The faults of a network's links as results list them: what, and when.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "fabric/network_faults.h"
#include "fabric/results/port_map.h"

namespace verbena::fabric {

struct ListedFault {
  u32 link = 0;
  std::string_view what;              // "down", "rules" (loss, delay, ...), "stuck pause"
  std::optional<Time> from, until{};  // from nullopt: all the time; until nullopt: to the end
};

[[nodiscard]] std::vector<ListedFault> listed(const NetworkFaults& faults, const PortMap& ports);

}  // namespace verbena::fabric
