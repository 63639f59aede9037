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

// Returns the names of all columns' lines, in the order in which they first occur.
std::vector<std::string> names_of(const std::vector<SimColumn>& columns) {
  std::vector<std::string> names;
  for (const SimColumn& column : columns)
    for (const fabric::SummaryLine& line : column.lines)
      if (std::ranges::find(names, line.name) == names.end()) names.push_back(line.name);
  return names;
}

std::string value_of(const SimColumn& column, const std::string& name) {
  const auto line = std::ranges::find(column.lines, name, &fabric::SummaryLine::name);
  return line == column.lines.end() ? "-" : line->value;
}

// Returns the cell, in quotes if necessary. RFC 4180.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted(1, '"');
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  quoted += '"';
  return quoted;
}

}  // namespace

std::string table_text(const std::vector<SimColumn>& columns, std::size_t width) {
  const std::vector<std::string> names = names_of(columns);
  std::size_t names_width = 20;
  for (const std::string& name : names) names_width = std::max(names_width, name.size() + 1);
  std::string text;
  const auto out = std::back_inserter(text);
  for (std::size_t first = 0, last = 0; first < columns.size(); first = last) {
    std::size_t used = names_width;
    while (last < columns.size() && (last == first || used + width_of(columns[last]) <= width))
      used += width_of(columns[last++]);
    if (first != 0) text += "\n";
    fmt::format_to(out, "{:<{}}", "", names_width);
    for (std::size_t i = first; i < last; ++i)
      fmt::format_to(out, "{:>{}}", columns[i].title, width_of(columns[i]));
    for (const std::string& name : names) {
      fmt::format_to(out, "\n{:<{}}", name, names_width);
      for (std::size_t i = first; i < last; ++i)
        fmt::format_to(out, "{:>{}}", value_of(columns[i], name), width_of(columns[i]));
    }
    text += "\n";
  }
  return text;
}

std::string table_csv(const std::vector<SimColumn>& columns) {
  std::string text = "run";
  const auto out = std::back_inserter(text);
  const std::vector<std::string> names = names_of(columns);
  for (const std::string& name : names) fmt::format_to(out, ",{}", csv_cell(name));
  for (const SimColumn& column : columns) {
    fmt::format_to(out, "\n{}", csv_cell(column.title));
    for (const std::string& name : names)
      fmt::format_to(out, ",{}", csv_cell(value_of(column, name)));
  }
  text += '\n';
  return text;
}

}  // namespace verbena::cli
