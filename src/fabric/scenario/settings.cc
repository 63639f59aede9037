#include "fabric/scenario/settings.h"

#include <algorithm>

#include <fmt/format.h>

namespace verbena::fabric {
namespace {

std::string normalized(std::string key) {
  std::ranges::replace(key, '-', '_');
  return key;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// Of the keys there are, the path of the only one that ends with `key`.
Parsed<std::string> path_of(const std::string& key, const std::vector<std::string>& offered) {
  std::vector<std::string> found;
  for (const std::string& path : offered) {
    if (path == key) return path;
    if (path.ends_with("." + key) && std::ranges::find(found, path) == found.end())
      found.push_back(path);
  }
  if (found.size() == 1) return found.front();
  if (!found.empty())
    return tl::unexpected(
        InputError{fmt::format("{} may be {}: give the whole path", key, one_of(found))});
  std::vector<std::string> names;
  for (const std::string& path : offered) names.push_back(last_part(path));
  const std::optional<std::string> meant = nearest(last_part(key), names);
  return tl::unexpected(InputError{fmt::format("{}: this scenario has no such key{}", key,
                                               meant ? "; did you mean " + *meant + "?" : "")});
}

// The key as the file spells it.
std::string spelling(const YAML::Node& node, const std::string& key) {
  for (const auto& entry : node)
    if (entry.first.IsScalar() && normalized(entry.first.Scalar()) == key)
      return entry.first.Scalar();
  return key;
}

// `path` from `node` on; `done`: the path to it.
void put(YAML::Node node, const std::string& path, const std::string& done,
         const std::string& value, const Reading& known) {
  const std::size_t dot = path.find('.');
  const std::string key = path.substr(0, dot);
  const std::string here = done.empty() ? key : done + "." + key;
  if (node.IsSequence()) {
    const std::size_t place = std::stoul(key);  // as it was offered
    return put(node[place], path.substr(dot + 1), here, value, known);
  }
  const std::string spelled = spelling(node, key);
  if (dot == std::string::npos) {
    node[spelled] = value;
    return;
  }
  const auto short_form = known.short_forms().find(here);
  if (node[spelled].IsScalar() && short_form != known.short_forms().end()) {
    YAML::Node mapping;
    mapping[short_form->second] = node[spelled].Scalar();
    node[spelled] = mapping;
  }
  put(node[spelled], path.substr(dot + 1), here, value, known);
}

}  // namespace

Parsed<void> apply(const Setting& setting, const Reading& known, YAML::Node root) {
  const Parsed<std::string> path = path_of(normalized(setting.key), known.offered());
  if (!path) return tl::unexpected(path.error());
  put(root, *path, {}, setting.value, known);
  return {};
}

}  // namespace verbena::fabric
