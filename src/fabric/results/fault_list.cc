#include "fabric/results/fault_list.h"

namespace verbena::fabric {

std::vector<ListedFault> listed(const NetworkFaults& faults, const PortMap& ports) {
  const auto end_of = [](Time time) {
    return time == Time::never() ? std::nullopt : std::optional(time);
  };
  std::vector<ListedFault> list;
  for (const LinkOutage& outage : faults.outages)
    list.push_back({outage.link, "down", outage.down, end_of(outage.up)});
  for (const LinkRules& rules : faults.rules)
    list.push_back({rules.link, "rules", std::nullopt, std::nullopt});
  for (const StuckPause& pause : faults.stuck_pauses)
    list.push_back({ports.ends()[ports.end_of(pause.node, pause.port)].link, "stuck pause",
                    pause.from, end_of(pause.until)});
  return list;
}

}  // namespace verbena::fabric
