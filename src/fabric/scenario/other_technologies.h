// Use of a file that was written for one technology with another: technologies are compared on the
// same network, and the settings of a file for one of them (`infiniband`, `tcp`, PFC of `switch`)
// must not be errors for the others. So where the technology is given besides the file (--set,
// --sweep, verbena plan), settings that only others use are left out, and named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "fabric/scenario/setting.h"
#include "fabric/technology.h"

namespace verbena::fabric {

// Returns the technology that `settings` give; the last one counts. Returns nullopt if they give
// none, or a name that does not exist.
[[nodiscard]] std::optional<Technology> technology_given(const std::vector<Setting>& settings);
// Returns the settings with those of the technology first, since other keys depend on it, and
// without those whose whole paths begin with a section that it has no use for, which go to
// `left_out`.
[[nodiscard]] std::vector<Setting> settings_for(Technology technology,
                                                const std::vector<Setting>& settings,
                                                std::vector<std::string>& left_out);
// Removes what that technology has no use for, and adds its paths to `left_out`.
void leave_out_others(Technology technology, YAML::Node root, std::vector<std::string>& left_out);
// Removes the key if it is there, however it spells '_'.
void leave_out(YAML::Node section, const std::string& path, std::vector<std::string>& left_out);
// "with infiniband, switch and hosts.congestion_control are left out: they are of others"; "": none
[[nodiscard]] std::string left_out_text(Technology technology,
                                        const std::vector<std::string>& left_out);

}  // namespace verbena::fabric
