#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "fabric/scenario/parts.h"

namespace verbena::fabric {
namespace {

bool is_simulated(Technology technology) {
  switch (technology) {
    case Technology::kRoCEv2: return true;
    case Technology::kInfiniBand:
    case Technology::kIWARP:
    case Technology::kTCP: return false;
  }
  CHECK_UNREACHABLE();
}

}  // namespace

Technology read_technology(Section& root) {
  std::array<std::string_view, kTechnologies.size()> names;
  std::ranges::transform(kTechnologies, names.begin(), name_of);
  const Technology technology = kTechnologies[root.choice("technology", 0, names)];
  if (is_simulated(technology)) return technology;
  root.complain("technology", fmt::format("{} is not simulated yet", name_of(technology)));
  return Technology::kRoCEv2;
}

}  // namespace verbena::fabric
