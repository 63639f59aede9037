// A report: one page that needs no network and no other file, with its data, its code (viewer/) and
// the library that draws charts.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace verbena::fabric {

// The version of the data's format: docs/viewer.md.
inline constexpr int kReportFormat = 1;

[[nodiscard]] std::string report_page(const nlohmann::ordered_json& data);

}  // namespace verbena::fabric
