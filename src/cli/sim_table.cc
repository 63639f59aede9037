#include "cli/sim_table.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace verbena::cli {
namespace {

std::size_t width_of(const SimColumn& column) {
  std::size_t width = column.title.size();
  for (const fabric::SummaryLine& line : column.lines) width = std::max(width, line.value.size());
  return width + 2;
}

// In quotes where it must be. RFC 4180.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted(1, '"');
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  quoted += '"';
  return quoted;
}

}  // namespace

std::string table_text(const std::vector<SimColumn>& columns, std::size_t width) {
  constexpr std::size_t kNames = 20;
  std::string text;
  const auto out = std::back_inserter(text);
  for (std::size_t first = 0, last = 0; first < columns.size(); first = last) {
    std::size_t used = kNames;
    while (last < columns.size() && (last == first || used + width_of(columns[last]) <= width))
      used += width_of(columns[last++]);
    if (first != 0) text += "\n";
    fmt::format_to(out, "{:<{}}", "", kNames);
    for (std::size_t i = first; i < last; ++i)
      fmt::format_to(out, "{:>{}}", columns[i].title, width_of(columns[i]));
    for (std::size_t row = 0; row < columns[first].lines.size(); ++row) {
      fmt::format_to(out, "\n{:<{}}", columns[first].lines[row].name, kNames);
      for (std::size_t i = first; i < last; ++i)
        fmt::format_to(out, "{:>{}}", columns[i].lines[row].value, width_of(columns[i]));
    }
    text += "\n";
  }
  return text;
}

std::string table_csv(const std::vector<SimColumn>& columns) {
  std::string text = "run";
  const auto out = std::back_inserter(text);
  for (const fabric::SummaryLine& line : columns.front().lines)
    fmt::format_to(out, ",{}", csv_cell(line.name));
  for (const SimColumn& column : columns) {
    fmt::format_to(out, "\n{}", csv_cell(column.title));
    for (const fabric::SummaryLine& line : column.lines)
      fmt::format_to(out, ",{}", csv_cell(line.value));
  }
  text += '\n';
  return text;
}

}  // namespace verbena::cli
