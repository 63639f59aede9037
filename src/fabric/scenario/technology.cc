#include <algorithm>
#include <array>

#include "fabric/scenario/parts.h"

namespace verbena::fabric {

Technology read_technology(Section& root) {
  std::array<std::string_view, kTechnologies.size()> names;
  std::ranges::transform(kTechnologies, names.begin(),
                         [](Technology technology) { return name_of(technology); });
  return kTechnologies[root.choice("technology", 0, names)];
}

namespace {

bool has_bonded_hosts(const Topology& topology) {
  std::vector<bool> has_link(topology.nodes);
  for (const TopologyLink& link : topology.links)
    for (const NodeIndex node : {link.a, link.b}) {
      if (!topology.is_switch[node] && has_link[node]) return true;
      has_link[node] = true;
    }
  return false;
}

}  // namespace

void read_fabric(Section& root, Section hosts, const Plan& plan, NetworkConfig& config) {
  if (config.technology != Technology::kRoCEv2 && has_bonded_hosts(plan.topology))
    root.complain("technology", "hosts with several links speak rocev2");
  config.gap_bytes = gap_bytes_of(config.technology);
  read_hosts(std::move(hosts), plan, config);
  (void)root.has("tcp");  // others have no use for it
  if (config.technology == Technology::kInfiniBand) return read_infiniband(root, plan, config);
  if (root.has("infiniband"))
    root.complain("infiniband", "it is of another technology; write technology: infiniband");
  read_tcp(root.section("tcp", "congestion_control"), config);
  read_switch(root.section("switch"), plan, longest_frame_of(config), config);
}

}  // namespace verbena::fabric
