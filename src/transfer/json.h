// JSON (RFC 8259) of headers and traces from outside, read by nlohmann-json. Refuses duplicate
// keys, trailing bytes, invalid UTF-16 escapes, and nesting deeper than kMaxDepth.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transfer/list.h"

namespace verbena::transfer {

struct JSON {
  enum class Type : u8 { kNull, kBool, kNumber, kString, kArray, kObject };
  static constexpr u32 kMaxDepth = 16;

  Type type = Type::kNull;
  bool boolean = false;
  std::string text{};         // of a string; of a number as it was written
  std::vector<JSON> items{};  // of an array
  std::vector<std::pair<std::string, JSON>> members{};  // of an object, in order

  [[nodiscard]] static Expected<JSON> parse(std::string_view text);
  [[nodiscard]] const JSON* find(std::string_view key) const;  // nullptr if there is none
  // A number without sign, fraction and exponent that fits.
  [[nodiscard]] std::optional<u64> whole() const;
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] bool is(Type wanted) const { return type == wanted; }
};

// Quotes and escapes.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace verbena::transfer
