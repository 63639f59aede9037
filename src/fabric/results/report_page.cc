#include "fabric/results/report_page.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "fabric/results/report_assets.h"

namespace verbena::fabric {
namespace {

void replace(std::string& text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  CHECK(at != std::string::npos);
  text.replace(at, mark.size(), by);
}

// For a script element, which "</script>" in a string would end.
std::string in_script(const nlohmann::ordered_json& data) {
  std::string text;
  for (const char c : data.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

}  // namespace

std::string report_page(const nlohmann::ordered_json& data) {
  std::string text(kReportPage);
  replace(text, "@STYLE@", kReportStyle);
  replace(text, "@CODE@", kReportCode);
  replace(text, "@CHARTS@", kChartLibrary);
  replace(text, "@DATA@", in_script(data));
  return text;
}

}  // namespace verbena::fabric
