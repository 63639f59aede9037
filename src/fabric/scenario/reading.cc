#include "fabric/scenario/reading.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/scenario/keys.h"

namespace verbena::fabric {
namespace {

// Levenshtein's, with a swap of neighbours as one step.
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

std::string join(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

}  // namespace

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& words) {
  std::optional<std::string> best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : words) {
    const std::size_t steps = edits(word, candidate);
    if (steps >= fewest) continue;
    fewest = steps;
    best = candidate;
  }
  return best;
}

std::string one_of(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
}

void Reading::complain(const YAML::Node& at, const std::string& path, const std::string& what) {
  if (!first_) first_ = line(at.Mark(), path, what);
}

void Reading::unknown_key(const YAML::Node& at, const std::string& section, const std::string& key,
                          const std::vector<std::string>& known) {
  unknown_.push_back({at.Mark(), section, key, known});
}

std::string Reading::line(const YAML::Mark& mark, const std::string& path,
                          const std::string& what) const {
  const std::string where = path.empty() ? "" : path + ": ";
  if (mark.is_null()) return fmt::format("{}: {}{}", file_, where, what);
  return fmt::format("{}:{}: {}{}", file_, mark.line + 1, where, what);
}

std::string Reading::advice(const Unknown& unknown) const {
  if (const auto meant = nearest(unknown.key, unknown.known))
    return fmt::format("did you mean {}?", *meant);
  for (const std::string& path : offered_)
    if (last_part(path) == unknown.key) return fmt::format("there is {}", path);
  if (unknown.known.empty()) return "nothing is to be set here";
  return fmt::format("there are {}", fmt::join(unknown.known, ", "));
}

std::optional<std::string> Reading::mistake() const {
  if (unknown_.empty()) return first_;
  const auto topmost = std::ranges::min_element(
      unknown_, {}, [](const Unknown& unknown) { return unknown.mark.line; });
  return line(topmost->mark, join(topmost->section, topmost->key),
              "no such key; " + advice(*topmost));
}

}  // namespace verbena::fabric
