// What report.html is made of; embedded at build time. The charts are drawn by Chart.js (MIT
// licence, https://www.chartjs.org), as Debian packages it.
#pragma once

#include <string_view>

namespace verbena::fabric {

extern const std::string_view kReportPage;  // with @DATA@, @CHARTS@ and @CODE@
extern const std::string_view kReportCode;
extern const std::string_view kChartLibrary;

}  // namespace verbena::fabric
