// report.html of a job, made of the rows of its results.sqlite and of nothing else: the page lists
// the query behind each of its parts.
#pragma once

#include <string>

#include "fabric/hpcc_ns3/words.h"

namespace verbena::jobs {

[[nodiscard]] fabric::Parsed<std::string> report_html(const std::string& database);

}  // namespace verbena::jobs
