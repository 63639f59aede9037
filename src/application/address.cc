#include "application/address.h"

#include <charconv>

namespace verbena::application {
namespace {

// Returns nullopt for 0 too.
std::optional<u16> parse_port(std::string_view text) {
  u16 port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

}  // namespace

std::optional<Address> parse_address(std::string_view text, u16 port) {
  if (const auto ip = GID::parse(text)) return Address{*ip, port};
  std::optional<u16> own_port = port;
  if (!text.ends_with(']')) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    own_port = parse_port(text.substr(colon + 1));
    text = text.substr(0, colon);
  }
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const auto ip = GID::parse(text);
  if (!ip || !own_port) return std::nullopt;
  return Address{*ip, *own_port};
}

}  // namespace verbena::application
