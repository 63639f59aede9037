#include "jobs/plan/plan_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace verbena::jobs {

std::string dollars_text(double dollars) {
  if (dollars >= 1e9) return fmt::format("${:.3g}G", dollars / 1e9);
  if (dollars >= 1e6) return fmt::format("${:.3g}M", dollars / 1e6);
  if (dollars >= 1e3) return fmt::format("${:.3g}k", dollars / 1e3);
  return fmt::format("${:.0f}", dollars);
}

std::string dollars_text(Range dollars) {
  return fmt::format("{} .. {}", dollars_text(dollars.low), dollars_text(dollars.high));
}

std::string watts_text(Range watts) {
  return fmt::format("{:.3g} .. {:.3g} kW", watts.low / 1e3, watts.high / 1e3);
}

std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result, line;
  const auto end_line = [&] {
    result.append(indent, ' ').append(line).append("\n");
    line.clear();
  };
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!line.empty() && indent + line.size() + 1 + word.size() > kColumns) end_line();
    if (!line.empty()) line.push_back(' ');
    line.append(word);
  }
  end_line();
  return result;
}

}  // namespace verbena::jobs
