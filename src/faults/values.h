// The values of the fault language: "1%", "20us", "10Gbit", "3-7", "write|read-response". Each
// function returns nullopt if the text is no such value.
#pragma once

#include <bitset>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "faults/rule.h"

namespace verbena::faults {

[[nodiscard]] std::optional<double> parse_probability(std::string_view text);  // "1%", "0.01"
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text);   // "1.5ms"; not < 0
[[nodiscard]] std::optional<i64> parse_rate(std::string_view text);    // "10Gbit", in bit/s; > 0
[[nodiscard]] std::optional<u64> parse_number(std::string_view text);  // "12", "0x11"
[[nodiscard]] std::optional<Interval> parse_interval(std::string_view text);  // "3", "3-7", "3-"
[[nodiscard]] std::optional<std::bitset<256>> parse_opcodes(std::string_view text);

}  // namespace verbena::faults
