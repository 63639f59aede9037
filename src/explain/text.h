// Pieces of text: printf's format, times and addresses as people read them, wrapped lines.
#pragma once

#include <string>

#include "base/time.h"

namespace verbena::explain {

[[nodiscard]] std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[nodiscard]] std::string text_of(Duration duration);  // "1.54 s", "20.1 ms", "3.0 us"
// Wraps words into lines of at most `columns`, indents all but the first, and ends with a line
// feed.
[[nodiscard]] std::string wrapped(const std::string& words, std::size_t columns);

}  // namespace verbena::explain
