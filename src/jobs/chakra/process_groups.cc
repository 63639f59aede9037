#include "jobs/chakra/process_groups.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace verbena::jobs::chakra {
namespace {

using nlohmann::json;

// Returns nullopt if `list` is no list of ranks, or has a rank twice.
std::optional<std::vector<u32>> ranks_of(const json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<u32> ranks;
  for (const json& one : list) {
    if (!one.is_number_unsigned() || one.get<u64>() > ~u32{0}) return std::nullopt;
    const u32 rank = one.get<u32>();
    if (std::ranges::find(ranks, rank) != ranks.end()) return std::nullopt;
    ranks.push_back(rank);
  }
  return ranks;
}

json parse(std::string_view text) { return json::parse(text, nullptr, false); }

}  // namespace

fabric::Parsed<ProcessGroups> read_groups(const std::string& file, const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return tl::unexpected(fabric::InputError{file + ": " + what});
  };
  const json root = parse(text);
  if (!root.is_object()) return wrong("not a JSON object of groups, as {\"1\": [0, 1, 2, 3]}");
  ProcessGroups groups;
  for (const auto& [name, list] : root.items()) {
    const std::optional<std::vector<u32>> ranks = ranks_of(list);
    if (!ranks || ranks->empty())
      return wrong(fmt::format("group {} is no list of ranks, each once", name));
    groups[name] = *ranks;
  }
  return groups;
}

std::optional<ProcessGroups> groups_of_pytorch(const std::string& text) {
  const std::size_t begin = text.find("[{"), end = text.rfind("}]");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return std::nullopt;
  const json list = parse(std::string_view(text).substr(begin, end + 2 - begin));
  if (!list.is_array()) return std::nullopt;
  ProcessGroups groups;
  for (const json& one : list) {
    if (!one.is_object() || !one.contains("ranks") || !one.contains("pg_name")) return std::nullopt;
    const std::optional<std::vector<u32>> ranks = ranks_of(one["ranks"]);
    if (!ranks || !one["pg_name"].is_string()) return std::nullopt;
    if (!ranks->empty()) groups[one["pg_name"].get<std::string>()] = *ranks;
  }
  return groups;
}

}  // namespace verbena::jobs::chakra
