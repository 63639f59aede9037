#include "faults/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "wire/ib/opcode.h"

namespace verbena::faults {
namespace {

struct Unit {
  std::string_view name;
  double scale;
};
constexpr std::array kTimes = {Unit{"ns", 1e3}, Unit{"us", 1e6}, Unit{"ms", 1e9}, Unit{"s", 1e12}};
constexpr std::array kRates = {Unit{"kbit", 1e3}, Unit{"mbit", 1e6}, Unit{"gbit", 1e9},
                               Unit{"bit", 1}};
constexpr double kLongest = 9e18;  // i64 holds it

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Parses a number and one of the units. Returns it scaled, within i64.
std::optional<i64> parse_scaled(std::string_view text, std::span<const Unit> units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string name(text.substr(digits));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  const auto unit = std::ranges::find(units, std::string_view(name), &Unit::name);
  const std::optional<double> value = parse_decimal(text.substr(0, digits));
  if (!value || unit == units.end() || *value * unit->scale > kLongest) return std::nullopt;
  return static_cast<i64>(std::llround(*value * unit->scale));
}

bool is_read_response(Opcode opcode) {
  return opcode.op >= Op::kRDMAReadResponseFirst && opcode.op <= Op::kRDMAReadResponseOnly;
}
bool is_send(Opcode opcode) {
  return opcode.op <= Op::kSendOnlyWithImmediate || opcode.op == Op::kSendLastWithInvalidate ||
         opcode.op == Op::kSendOnlyWithInvalidate;
}
bool is_write(Opcode opcode) {
  return opcode.op >= Op::kRDMAWriteFirst && opcode.op <= Op::kRDMAWriteOnlyWithImmediate;
}
bool is_first(const OpcodeTraits& traits) { return traits.first && !traits.last; }
bool is_last(const OpcodeTraits& traits) { return traits.last && !traits.first; }

// Returns whether the name means this OpCode.
bool is_named(std::string_view name, Opcode opcode) {
  const OpcodeTraits& traits = traits_of(opcode);
  if (name == "cnp") return opcode == kCNPOpcode;
  if (opcode.service == Service::kCNP) return false;
  if (name == "send") return is_send(opcode);
  if (name == "write") return is_write(opcode);
  if (name == "read") return opcode.op == Op::kRDMAReadRequest || is_read_response(opcode);
  if (name == "read-request") return opcode.op == Op::kRDMAReadRequest;
  if (name == "read-response") return is_read_response(opcode);
  if (name == "atomic") return traits.atomic_eth || traits.atomic_ack_eth;
  if (name == "ack") return opcode.op == Op::kAcknowledge;
  if (name == "first") return is_first(traits);
  if (name == "middle") return !traits.first && !traits.last;
  if (name == "last") return is_last(traits);
  return name == "only" && traits.first && traits.last;
}

std::bitset<256> opcodes_named(std::string_view name) {
  std::bitset<256> set;
  const std::optional<u64> number = parse_number(name);
  for (u32 byte = 0; byte < set.size(); ++byte) {
    const Opcode opcode = Opcode::from_byte(static_cast<u8>(byte));
    if (number ? *number == byte : traits_of(opcode).valid && is_named(name, opcode)) set.set(byte);
  }
  return set;
}

}  // namespace

std::optional<double> parse_probability(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const std::optional<double> value = parse_decimal(text);
  if (!value || *value < 0 || *value > (percent ? 100 : 1)) return std::nullopt;
  return percent ? *value / 100 : *value;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const std::optional<i64> value = parse_scaled(text, kTimes);
  return value ? std::optional(ps(*value)) : std::nullopt;
}

std::optional<i64> parse_rate(std::string_view text) {
  const std::optional<i64> value = parse_scaled(text, kRates);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<u64> parse_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  u64 value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Interval> parse_interval(std::string_view text) {
  const std::size_t dash = text.find('-');
  const std::optional<u64> first = parse_number(text.substr(0, dash));
  if (!first) return std::nullopt;
  if (dash == std::string_view::npos) return Interval{*first, *first};
  if (dash + 1 == text.size()) return Interval{.first = *first};
  const std::optional<u64> last = parse_number(text.substr(dash + 1));
  if (!last || *last < *first) return std::nullopt;
  return Interval{*first, *last};
}

std::optional<std::bitset<256>> parse_opcodes(std::string_view text) {
  std::bitset<256> all;
  while (true) {
    const std::size_t bar = text.find('|');
    const std::bitset<256> some = opcodes_named(text.substr(0, bar));
    if (some.none()) return std::nullopt;
    all |= some;
    if (bar == std::string_view::npos) return all;
    text.remove_prefix(bar + 1);
  }
}

}  // namespace verbena::faults
