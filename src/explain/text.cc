#include "explain/text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace verbena::explain {

std::string text(const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string out(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  std::vsnprintf(out.data(), out.size() + 1, format, again);
  va_end(again);
  return out;
}

std::string text_of(Duration duration) {
  const double seconds = duration.seconds();
  if (seconds >= 1) return text("%.2f s", seconds);
  if (seconds >= 1e-3) return text("%.1f ms", seconds * 1e3);
  return text("%.1f us", seconds * 1e6);
}

std::string wrapped(const std::string& words, std::size_t columns) {
  std::string out;
  std::size_t used = 0;  // of the line
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::size_t length = end - at;
    if (used != 0 && used + 1 + length > columns) {
      out.append("\n ");
      used = 1;
    }
    if (used != 0) out.push_back(' ');
    out.append(words, at, length);
    used += (used != 0) + length;
    at = end + 1;
  }
  out.push_back('\n');
  return out;
}

}  // namespace verbena::explain
