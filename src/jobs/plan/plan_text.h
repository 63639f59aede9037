// Numbers of plans as people read them.
#pragma once

#include <string>

#include "jobs/plan/catalogue.h"

namespace verbena::jobs {

// "$1.2 M", "$340 k", "$900"
[[nodiscard]] std::string dollars_text(double dollars);
// "$1.2 M .. $2.3 M"
[[nodiscard]] std::string dollars_text(Range dollars);
// "3.1 .. 5.2 kW"
[[nodiscard]] std::string watts_text(Range watts);

}  // namespace verbena::jobs
