// Reads a job from YAML.
#pragma once

#include <string>
#include <vector>

#include "fabric/scenario/scenario.h"
#include "jobs/job.h"

namespace verbena::jobs {

// Has it a key `preset`, or one of those? False also where it is no YAML.
[[nodiscard]] bool is_job(const std::string& text);
// Its text with what the preset says written out, and no key `preset`. Preconditions of both:
// is_job().
[[nodiscard]] std::string without_preset(const std::string& text);
// "collective", "training", "inference", "serving", "loading" or "chakra".
[[nodiscard]] std::string section_of_job(const std::string& text);
// As fabric::read_scenario().
[[nodiscard]] fabric::Parsed<Job> read_job(const std::string& name, const std::string& text,
                                           const std::vector<fabric::Setting>& settings,
                                           const fabric::FileReader& read_file);

}  // namespace verbena::jobs
