// Values of options, read from their text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/requests.h"

namespace verbena::cli {

// Parses seconds with an optional fraction, such as "0.5": 10 ms to a day. Returns nullopt for
// other texts.
[[nodiscard]] std::optional<Duration> parse_interval(std::string_view text);

// Parses "9100" (of 127.0.0.1), "10.0.0.1:9100" or "[::1]:9100". Returns nullopt for other texts.
[[nodiscard]] std::optional<ListenAddress> parse_listen_address(std::string_view text);

// Parses "key=value". Returns nullopt for other texts.
[[nodiscard]] std::optional<fabric::Setting> parse_setting(const std::string& text);

// Returns the parts between commas, without empty parts.
[[nodiscard]] std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace verbena::cli
