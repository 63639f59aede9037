// Keys of a scenario, in which `-` and `_` are the same.
#pragma once

#include <string>
#include <string_view>

#include <yaml-cpp/yaml.h>

namespace verbena::fabric {

// Returns the key with `_` in place of `-`.
[[nodiscard]] std::string normalized(std::string key);

// Returns the last part of a path, whose parts are joined by dots.
[[nodiscard]] std::string last_part(const std::string& path);

// KeyFound: the spelling in the file of a normalized key, and its value. "" and no value if the key
// is missing, or if `section` has no keys.
struct KeyFound {
  std::string spelling;
  YAML::Node value;
};
[[nodiscard]] KeyFound find_key(const YAML::Node& section, std::string_view key);

}  // namespace verbena::fabric
