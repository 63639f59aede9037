#include "fabric/scenario/keys.h"

#include <algorithm>

namespace verbena::fabric {

std::string normalized(std::string key) {
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

KeyFound find_key(const YAML::Node& section, std::string_view key) {
  KeyFound found;
  if (!section.IsMap()) return found;
  for (const auto& entry : section)
    if (entry.first.IsScalar() && normalized(entry.first.Scalar()) == key) {
      found.spelling = entry.first.Scalar();
      found.value.reset(entry.second);
      return found;
    }
  return found;
}

}  // namespace verbena::fabric
