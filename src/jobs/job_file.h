// Reads a job from YAML.
#pragma once

#include <string>
#include <vector>

#include "fabric/scenario/scenario.h"
#include "jobs/job.h"

namespace verbena::jobs {

// Returns true if the text has a key `preset` or one of the sections (section_of_job()). Returns
// false if it is no YAML.
[[nodiscard]] bool is_job(const std::string& text);
// Returns the text with the preset's settings written out, and without the key `preset`.
// Precondition of this and the next function: is_job().
[[nodiscard]] std::string without_preset(const std::string& text);
// "collective", "training", "inference", "serving", "loading" or "chakra".
[[nodiscard]] std::string section_of_job(const std::string& text);
// Reads a job, as fabric::read_scenario() reads a scenario.
[[nodiscard]] fabric::Parsed<Job> read_job(const std::string& name, const std::string& text,
                                           const std::vector<fabric::Setting>& settings,
                                           const fabric::FileReader& read_file);

}  // namespace verbena::jobs
