// Keys of a scenario, in which `-` and `_` are the same.
#pragma once

#include <string>
#include <string_view>

#include <yaml-cpp/yaml.h>

namespace verbena::fabric {

// With `_` alone.
[[nodiscard]] std::string normalized(std::string key);

// Of a path, whose parts are joined by dots.
[[nodiscard]] std::string last_part(const std::string& path);

// Of a key, normalized: as the file spells it, and its value. "" and no value: it is not there, or
// `section` has no keys.
struct KeyFound {
  std::string spelling;
  YAML::Node value;
};
[[nodiscard]] KeyFound find_key(const YAML::Node& section, std::string_view key);

}  // namespace verbena::fabric
