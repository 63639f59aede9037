// Presets: clusters that can be had, each as the part of a job file that describes it, and where
// its numbers come from. What the user's file says goes before what the preset says.
#pragma once

#include <span>
#include <string_view>

namespace verbena::jobs {

struct Preset {
  std::string_view name;
  std::string_view source;
  std::string_view yaml;
  // What it is built of, as jobs/plan/catalogue.h names it; "": whatever fits.
  std::string_view nic = "", switch_model = "";
};

[[nodiscard]] std::span<const Preset> presets();
// nullptr: no such preset.
[[nodiscard]] const Preset* preset_named(std::string_view name);

}  // namespace verbena::jobs
