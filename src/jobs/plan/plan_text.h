// Numbers of plans as people read them.
#pragma once

#include <string>
#include <string_view>

#include "jobs/plan/catalogue.h"

namespace verbena::jobs {

// "$1.2M", "$340k", "$900"
[[nodiscard]] std::string dollars_text(double dollars);
// "$1.2M .. $2.3M"
[[nodiscard]] std::string dollars_text(Range dollars);
// "3.1 .. 5.2 kW"
[[nodiscard]] std::string watts_text(Range watts);
// Returns the text in lines of at most kColumns, each indented by `indent` spaces, the last with an
// end of line too.
inline constexpr std::size_t kColumns = 98;
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t indent);

}  // namespace verbena::jobs
