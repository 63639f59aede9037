#include "fabric/scenario/section.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "fabric/scenario/keys.h"
#include "fabric/scenario/units.h"

namespace verbena::fabric {

Section::Section(Reading& reading, const YAML::Node& node, std::string path)
    : reading_(&reading), node_(node), path_(std::move(path)) {
  if (!node_.IsDefined() || node_.IsNull() || node_.IsMap()) return;
  reading.complain(node_, path_, "expected keys and their values, as `key: value`");
  node_.reset();
}

std::string Section::path_to(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

YAML::Node Section::find(std::string_view key) {
  if (std::ranges::find(asked_, key) == asked_.end()) {
    asked_.emplace_back(key);
    reading_->offer(path_to(key));
  }
  return find_key(node_, key).value;
}

bool Section::has(std::string_view key) { return !find(key).IsNull(); }

void Section::complain(std::string_view key, const std::string& what) {
  const YAML::Node value = find(key);
  reading_->complain(value.IsNull() ? node_ : value, path_to(key), what);
}

std::optional<std::string> Section::scalar(std::string_view key) {
  const YAML::Node value = find(key);
  if (value.IsNull()) return std::nullopt;
  if (value.IsScalar()) return value.Scalar();
  complain(key, "expected one value");
  return std::nullopt;
}

Rate Section::rate(std::string_view key, Rate fallback) {
  const std::optional<std::string> text = scalar(key);
  if (!text) return fallback;
  const std::optional<Rate> rate = rate_of(*text);
  if (rate && rate->bps() != 0) return *rate;
  complain(key, fmt::format("'{}' is no rate; write it as 100Gbps", *text));
  return fallback;
}

Duration Section::duration(std::string_view key, Duration fallback) {
  const std::optional<std::string> text = scalar(key);
  if (!text) return fallback;
  if (const std::optional<Duration> duration = duration_of(*text)) return *duration;
  complain(key, fmt::format("'{}' is no time; write it as 1us, 250ns or 10ms", *text));
  return fallback;
}

u64 Section::bytes(std::string_view key, u64 fallback, u64 least) {
  const std::optional<std::string> text = scalar(key);
  if (!text) return fallback;
  const std::optional<u64> bytes = bytes_of(*text);
  if (bytes && *bytes >= least) return *bytes;
  complain(key, bytes ? fmt::format("'{}' is too small; {} bytes at least", *text, least)
                      : fmt::format("'{}' is no size; write it as 1500, 64KB or 1MiB", *text));
  return fallback;
}

u64 Section::count(std::string_view key, u64 fallback, u64 least, u64 most) {
  const std::optional<std::string> text = scalar(key);
  if (!text) return fallback;
  u64 value = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  if (error == std::errc() && rest == end && value >= least && value <= most) return value;
  complain(key, fmt::format("'{}' is none of {} .. {}", *text, least, most));
  return fallback;
}

double Section::number(std::string_view key, double fallback, double least, double most) {
  const std::optional<std::string> text = scalar(key);
  if (!text) return fallback;
  const std::optional<double> value = number_of(*text);
  if (value && *value >= least && *value <= most) return *value;
  complain(key, fmt::format("'{}' is no number of {} .. {}", *text, least, most));
  return fallback;
}

bool Section::on(std::string_view key, bool fallback) {
  const std::optional<std::string> text = scalar(key);
  if (!text) return fallback;
  for (const std::string_view yes : {"on", "true", "yes"})
    if (*text == yes) return true;
  for (const std::string_view no : {"off", "false", "no"})
    if (*text == no) return false;
  complain(key, fmt::format("'{}' is neither on nor off", *text));
  return fallback;
}

std::string Section::text(std::string_view key, const std::string& fallback) {
  return scalar(key).value_or(fallback);
}

std::size_t Section::choice(std::string_view key, std::size_t fallback,
                            std::span<const std::string_view> words) {
  const std::optional<std::string> text = scalar(key);
  if (!text) return fallback;
  const auto found = std::ranges::find(words, normalized(*text), [](std::string_view word) {
    return normalized(std::string(word));
  });
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  const std::vector<std::string> known(words.begin(), words.end());
  const std::optional<std::string> meant = nearest(*text, known);
  complain(key, fmt::format("'{}' is not known; {}", *text,
                            meant ? fmt::format("did you mean {}?", *meant)
                                  : fmt::format("there are {}", one_of(known))));
  return fallback;
}

std::vector<std::string> Section::texts(std::string_view key) {
  const YAML::Node value = find(key);
  std::vector<std::string> words;
  if (value.IsNull()) return words;
  if (value.IsScalar()) return {value.Scalar()};
  for (const YAML::Node& item : value) {
    if (!value.IsSequence() || !item.IsScalar()) {
      complain(key, "expected one value, or a list of them: [a, b]");
      return {};
    }
    words.push_back(item.Scalar());
  }
  return words;
}

Section Section::part(const YAML::Node& node, std::string path, std::string_view short_for) {
  if (!short_for.empty()) reading_->offer_short(path, std::string(short_for));
  if (short_for.empty() || !node.IsScalar()) return {*reading_, node, std::move(path)};
  YAML::Node mapping;
  mapping[std::string(short_for)] = node;
  return {*reading_, mapping, std::move(path)};
}

Section Section::section(std::string_view key, std::string_view short_for) {
  return part(find(key), path_to(key), short_for);
}

std::vector<Section> Section::sections(std::string_view key, std::string_view short_for) {
  const YAML::Node value = find(key);
  std::vector<Section> found;
  if (value.IsNull()) return found;
  if (!value.IsSequence()) return {part(value, path_to(key), short_for)};
  for (std::size_t i = 0; i < value.size(); ++i)
    found.push_back(part(value[i], fmt::format("{}.{}", path_to(key), i), short_for));
  return found;
}

void Section::done() {
  if (!node_.IsMap()) return;
  std::vector<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) {
      reading_->complain(entry.first, path_, "a key must be a word");
      continue;
    }
    const std::string key = normalized(entry.first.Scalar());
    if (std::ranges::find(asked_, key) == asked_.end())
      reading_->unknown_key(entry.first, path_, entry.first.Scalar(), asked_);
    else if (std::ranges::find(seen, key) != seen.end())
      reading_->complain(entry.first, path_to(key), "is given twice; leave one out");
    seen.push_back(key);
  }
}

}  // namespace verbena::fabric
