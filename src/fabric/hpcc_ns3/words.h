// Words: a text as words between blanks, with the line that each is in, for files whose readers
// care for nothing else.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "base/types.h"

namespace verbena::fabric {

// InputError: an error, as "FILE:LINE: what", for a person.
struct InputError {
  std::string message;
};
template <typename T>
using Parsed = tl::expected<T, InputError>;

class Words {
 public:
  // `name`: of the file, for errors. `text` outlives it.
  Words(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  // Returns nullopt at the end.
  [[nodiscard]] std::optional<std::string_view> next();
  // Returns the words left in the line of the last one.
  [[nodiscard]] std::string_view rest_of_line();
  // Returns nullopt at the end, or if the word is no such number.
  template <typename Number>
  [[nodiscard]] std::optional<Number> next_number() {
    const std::optional<std::string_view> word = next();
    Number value{};
    if (!word) return std::nullopt;
    const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), value);
    if (error != std::errc() || end != word->data() + word->size()) return std::nullopt;
    return value;
  }
  // At the word read last.
  [[nodiscard]] tl::unexpected<InputError> error(std::string_view what) const;

 private:
  std::string_view name_, text_;
  std::size_t at_ = 0;
  u32 line_ = 1, word_line_ = 1;
};

}  // namespace verbena::fabric
