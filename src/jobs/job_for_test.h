// A job of its text alone, for this layer's tests: there are no other files.
#pragma once

#include <string>
#include <vector>

#include "jobs/job_file.h"

namespace verbena::jobs::test {

inline fabric::Parsed<Job> job_of(const std::string& text,
                                  const std::vector<fabric::Setting>& settings = {}) {
  return read_job("job.yaml", text, settings,
                  [](const std::string&) -> fabric::Parsed<std::string> {
                    return tl::unexpected(fabric::InputError{"no such file"});
                  });
}

inline std::string mistake_of(const std::string& text) {
  const auto job = job_of(text);
  return job ? "" : job.error().message;
}

}  // namespace verbena::jobs::test
