// Presets: clusters that can be bought or rented, each as the part of a job file that describes it,
// with the source of its numbers. The user's file takes precedence over the preset.
#pragma once

#include <span>
#include <string_view>

namespace verbena::jobs {

struct Preset {
  std::string_view name;
  std::string_view source;
  std::string_view yaml;
  // The hardware of the cluster, as jobs/plan/catalogue.h names it; "" if any that fits may be
  // chosen.
  std::string_view nic = "", switch_model = "";
};

[[nodiscard]] std::span<const Preset> presets();
// Returns nullptr if there is no such preset.
[[nodiscard]] const Preset* preset_named(std::string_view name);

}  // namespace verbena::jobs
