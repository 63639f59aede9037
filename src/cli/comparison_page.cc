#include "cli/comparison_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fabric/results/report_assets.h"

namespace verbena::cli {
namespace {

// Returns nullptr for a metric without a line in the summary. The page does not show it.
const fabric::SummaryLine* line_of(const SimResult& result, const std::string& name) {
  const auto line = std::ranges::find(result.lines, name, &fabric::SummaryLine::name);
  return line == result.lines.end() ? nullptr : &*line;
}

struct Amount {
  double value = 0;
  bool is_there = false;
};

// The number that a line begins with, with its unit's power, so that bars compare.
Amount amount_of(const std::string& text) {
  char* rest = nullptr;
  const double value = std::strtod(text.c_str(), &rest);
  if (rest == text.c_str() || !std::isfinite(value)) return {};
  const std::string_view unit(rest);
  const auto times = [&](std::string_view prefix, double factor) {
    return unit.starts_with(prefix) ? factor : 0;
  };
  for (const double factor :
       {times(" ps", 1e-12), times(" ns", 1e-9), times(" us", 1e-6), times(" ms", 1e-3),
        times(" k", 1e3), times(" M", 1e6), times(" G", 1e9), times(" T", 1e12)})
    if (factor != 0) return {value * factor, true};
  return {value, true};
}

std::string row_of(const std::string& name, const std::vector<SimResult>& results) {
  std::vector<Amount> amounts;
  double most = 0;
  for (const SimResult& result : results) {
    const fabric::SummaryLine* const line = line_of(result, name);
    amounts.push_back(line == nullptr ? Amount{} : amount_of(line->value));
    most = std::max(most, amounts.back().value);
  }
  std::string row = fmt::format("<tr><th>{}</th>", escaped(name));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const fabric::SummaryLine* const line = line_of(results[i], name);
    row += fmt::format("<td>{}", line == nullptr ? "-" : escaped(line->value));
    if (amounts[i].is_there && most > 0)
      row += fmt::format("<div class=\"bar\" style=\"width:{:.1f}%\"></div>",
                         std::max(0.0, 100 * amounts[i].value / most));
    row += "</td>";
  }
  return row + "</tr>\n";
}

std::vector<std::string> names_in(const std::vector<SimResult>& results) {
  std::vector<std::string> names;
  for (const SimResult& result : results)
    for (const fabric::SummaryLine& line : result.lines)
      if (std::ranges::find(names, line.name) == names.end()) names.push_back(line.name);
  return names;
}

}  // namespace

std::string comparison_page(const std::string& title, const std::vector<SimResult>& results,
                            const std::string& text) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<style>{1}</style>\n<h1>{0}</h1>\n<div class=\"scroll\"><table class=\"comparison\">\n"
      "<tr><th></th>",
      escaped(title), fabric::kReportStyle);
  for (const SimResult& result : results) page += fmt::format("<th>{}</th>", escaped(result.title));
  page += "</tr>\n";
  for (const std::string& name : names_in(results)) page += row_of(name, results);
  page += "</table></div>\n";
  for (const SimResult& result : results)
    for (const std::string& unmet : result.unmet)
      page +=
          fmt::format("<p class=\"unmet bad\">{}: {}</p>\n", escaped(result.title), escaped(unmet));
  if (!text.empty()) page += fmt::format("<pre>{}</pre>\n", escaped(text));
  return page + "</html>\n";
}

}  // namespace verbena::cli
