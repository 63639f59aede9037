#include "cli/option_values.h"

#include <charconv>

namespace verbena::cli {
namespace {

constexpr double kMinSeconds = 0.01, kMaxSeconds = 86'400;

template <typename T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Duration> parse_interval(std::string_view text) {
  const std::optional<double> seconds = parse_all<double>(text);
  if (!seconds || !(*seconds >= kMinSeconds && *seconds <= kMaxSeconds)) return std::nullopt;
  return ns(static_cast<i64>(*seconds * 1e9));
}

std::optional<ListenAddress> parse_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const bool alone = colon == std::string_view::npos;
  const std::optional<u16> port = parse_all<u16>(alone ? text : text.substr(colon + 1));
  if (!port) return std::nullopt;
  if (alone) return ListenAddress{GID::from_ipv4(0x7f000001), *port};
  std::string_view address = text.substr(0, colon);
  const bool brackets = address.starts_with('[') && address.ends_with(']');
  if (brackets) address = address.substr(1, address.size() - 2);
  const std::optional<GID> gid = GID::parse(address);
  if (!gid || gid->is_ipv4() == brackets) return std::nullopt;
  return ListenAddress{*gid, *port};
}

std::optional<fabric::Setting> parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) return std::nullopt;
  return fabric::Setting{text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  std::erase(parts, "");
  return parts;
}

}  // namespace verbena::cli
