// Values of options, read from their text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/requests.h"

namespace verbena::cli {

// Seconds, with a fraction if need be: "0.5"; 10 ms to a day. nullopt: no such time.
[[nodiscard]] std::optional<Duration> parse_interval(std::string_view text);

// "9100" (of 127.0.0.1), "10.0.0.1:9100", "[::1]:9100". nullopt: none of them.
[[nodiscard]] std::optional<ListenAddress> parse_listen_address(std::string_view text);

// "key=value". nullopt: no such thing.
[[nodiscard]] std::optional<fabric::Setting> parse_setting(const std::string& text);

// Without empty parts.
[[nodiscard]] std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace verbena::cli
