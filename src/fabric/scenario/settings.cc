#include "fabric/scenario/settings.h"

#include <algorithm>

#include <fmt/format.h>

#include "fabric/scenario/keys.h"

namespace verbena::fabric {
namespace {

// Returns the offered path that is `key`, or else the only one that ends with it.
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

// A copy that has no place in any file, so that no mistake in it is reported at a line of one.
YAML::Node without_place(const YAML::Node& from) {
  if (from.IsNull()) return YAML::Node(YAML::NodeType::Null);
  if (from.IsScalar()) return YAML::Node(from.Scalar());
  YAML::Node to(from.Type());
  for (const auto& item : from) {
    if (from.IsMap())
      to[item.first.Scalar()] = without_place(item.second);
    else
      to.push_back(without_place(item));
  }
  return to;
}

// A list or a mapping is written as in a file: [a, b], {down: h0-s0}. All else is taken as it is.
Parsed<YAML::Node> value_of(const Setting& setting) {
  const std::string& text = setting.value;
  if (!text.starts_with('[') && !text.starts_with('{')) return YAML::Node(text);
  try {
    return without_place(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return tl::unexpected(InputError{
        fmt::format("{}: '{}' is no list and no mapping: {}", setting.key, text, error.msg)});
  }
}

// `path` from `node` on; `done`: the path to it.
Parsed<void> put(YAML::Node node, const std::string& path, const std::string& done,
                 const YAML::Node& value, const Reading& known) {
  if (node.IsScalar()) {
    const auto short_form = known.short_forms().find(done);
    if (short_form == known.short_forms().end())
      return tl::unexpected(
          InputError{fmt::format("{}: '{}' has no keys to be set", done, node.Scalar())});
    YAML::Node mapping;
    mapping[short_form->second] = node.Scalar();
    node = mapping;
  }
  const std::size_t dot = path.find('.');
  const std::string key = path.substr(0, dot);
  const std::string here = done.empty() ? key : done + "." + key;
  if (node.IsSequence()) {
    const std::size_t place = std::stoul(key);  // as it was offered
    return put(node[place], path.substr(dot + 1), here, value, known);
  }
  const std::string found = find_key(node, key).spelling;
  const std::string spelled = found.empty() ? key : found;
  if (dot != std::string::npos) return put(node[spelled], path.substr(dot + 1), here, value, known);
  node[spelled] = value;
  return {};
}

}  // namespace

Parsed<void> apply(const Setting& setting, const Reading& known, YAML::Node root) {
  const Parsed<std::string> path = path_of(normalized(setting.key), known.offered());
  if (!path) return tl::unexpected(path.error());
  const Parsed<YAML::Node> value = value_of(setting);
  if (!value) return tl::unexpected(value.error());
  return put(root, *path, {}, *value, known);
}

}  // namespace verbena::fabric
