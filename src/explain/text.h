// Pieces of text: printf's format, times and addresses as people read them, lines of a width.
#pragma once

#include <string>

#include "base/time.h"

namespace verbena::explain {

[[nodiscard]] std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
[[nodiscard]] std::string text_of(Duration duration);  // "1.54 s", "20.1 ms", "3.0 us"
// Words in lines of at most `columns`, those after the first indented; a line feed at the end.
[[nodiscard]] std::string wrapped(const std::string& words, std::size_t columns);

}  // namespace verbena::explain
