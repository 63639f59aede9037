// A report: one page that needs no network and no other file, with its data, its code, the parts
// that all reports share, and the library that draws charts.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace verbena::fabric {

// `page` has @DATA@ and @CODE@, and @STYLE@, @CHARTS@ and @PARTS@ for what is shared.
[[nodiscard]] std::string report_page(std::string_view page, std::string_view code,
                                      const nlohmann::ordered_json& data);

}  // namespace verbena::fabric
