#include "check/settings.h"

#include <charconv>

namespace verbena::check {
namespace {

bool set(Settings& settings, std::string_view word) {
  if (word.empty() || word == "1" || word == "on") return true;
  if (word == "fatal") return settings.fatal = true;
  if (word == "leaks") return settings.leaks = true;
  if (word == "overlaps") return settings.overlaps = true;
  return false;
}

}  // namespace

std::optional<Settings> parse_settings(std::string_view text) {
  Settings settings;
  while (true) {
    const std::size_t comma = text.find(',');
    if (!set(settings, text.substr(0, comma))) return std::nullopt;
    if (comma == std::string_view::npos) return settings;
    text.remove_prefix(comma + 1);
  }
}

std::optional<int> parse_exit_code(std::string_view text) {
  int code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (error != std::errc{} || end != text.data() + text.size() || code < 0 || code > 255)
    return std::nullopt;
  return code;
}

}  // namespace verbena::check
