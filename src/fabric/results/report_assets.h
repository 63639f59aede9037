// What report.html is made of; embedded at build time. The charts are drawn by Chart.js (MIT
// licence, https://www.chartjs.org), as Debian packages it.
#pragma once

#include <string_view>

namespace verbena::fabric {

extern const std::string_view kReportPage, kReportCode;    // of a scenario
extern const std::string_view kReportStyle, kReportParts;  // of all reports
extern const std::string_view kChartLibrary;

}  // namespace verbena::fabric
