// The parts of report.html, embedded at build time. viewer/ has the sources of the page, its style
// and its code. The charts are drawn by Chart.js (MIT licence, https://www.chartjs.org), as Debian
// packages it.
#pragma once

#include <string_view>

namespace verbena::fabric {

extern const std::string_view kReportPage, kReportStyle, kReportCode;
extern const std::string_view kChartLibrary;

}  // namespace verbena::fabric
