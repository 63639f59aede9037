#include "fabric/scenario/expectation.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "fabric/scenario/units.h"

namespace verbena::fabric {
namespace {

struct Operator {
  std::string_view text;
  Comparison comparison;
};
// Longer ones before what they begin with.
constexpr std::array kOperators = {
    Operator{"<=", Comparison::kAtMost}, Operator{">=", Comparison::kAtLeast},
    Operator{"==", Comparison::kEqual},  Operator{"!=", Comparison::kNotEqual},
    Operator{"<", Comparison::kLess},    Operator{">", Comparison::kGreater}};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || c == ' ' || c == '_';
  });
}

// Numbers before quantities, since a plain number is a byte too.
std::optional<double> value_of(std::string_view text) {
  if (const auto number = number_of(text)) return *number;
  if (const auto duration = duration_of(text)) return duration->seconds();
  if (const auto rate = rate_of(text)) return static_cast<double>(rate->bps());
  const bool is_of_a_second = text.ends_with("/s");  // 45GB/s
  if (const auto bytes = bytes_of(is_of_a_second ? text.substr(0, text.size() - 2) : text))
    return static_cast<double>(*bytes);
  return std::nullopt;
}

}  // namespace

Parsed<Expectation> parse_expectation(std::string_view text) {
  for (const auto& [sign, comparison] : kOperators) {
    const std::size_t at = text.find(sign);
    if (at == std::string_view::npos) continue;
    Expectation expectation{.text = std::string(trimmed(text)),
                            .name = std::string(trimmed(text.substr(0, at))),
                            .comparison = comparison};
    const std::string_view value = trimmed(text.substr(at + sign.size()));
    if (const std::optional<double> number = value_of(value))
      expectation.value = *number;
    else if (is_word(value) &&
             (comparison == Comparison::kEqual || comparison == Comparison::kNotEqual))
      expectation.word = value;
    else
      return tl::unexpected(InputError{fmt::format("'{}': '{}' is no value", text, value)});
    if (!expectation.name.empty()) return expectation;
  }
  return tl::unexpected(
      InputError{fmt::format("'{}': write it as 'drops == 0' or 'fct.p99 < 2ms'", text)});
}

}  // namespace verbena::fabric
