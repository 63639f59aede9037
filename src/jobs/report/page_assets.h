// What a job's report.html is made of beside what all reports share; embedded at build time.
#pragma once

#include <string_view>

namespace verbena::jobs {

extern const std::string_view kJobPage, kJobCode;

}  // namespace verbena::jobs
