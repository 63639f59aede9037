#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fabric/scenario/parts.h"

namespace verbena::fabric {
namespace {

bool is_simulated(Technology technology) {
  switch (technology) {
    case Technology::kRoCEv2:
    case Technology::kInfiniBand: return true;
    case Technology::kIWARP:
    case Technology::kTCP: return false;
  }
  CHECK_UNREACHABLE();
}

}  // namespace

Technology read_technology(Section& root) {
  std::array<std::string_view, kTechnologies.size()> names;
  std::ranges::transform(kTechnologies, names.begin(),
                         [](Technology technology) { return name_of(technology); });
  const Technology technology = kTechnologies[root.choice("technology", 0, names)];
  if (is_simulated(technology)) return technology;
  root.complain("technology", fmt::format("{} is not simulated yet", name_of(technology)));
  return Technology::kRoCEv2;
}

void read_fabric(Section& root, const Plan& plan, NetworkConfig& config) {
  read_hosts(root.section("hosts"), plan, config);
  if (config.technology == Technology::kInfiniBand) return read_infiniband(root, plan, config);
  if (root.has("infiniband"))
    root.complain("infiniband", "it is of another technology; write technology: infiniband");
  read_switch(root.section("switch"), plan, NetworkConfig::kLongestFrame, config);
}

}  // namespace verbena::fabric
