// Jobs, as `verbena sim` runs them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/requests.h"
#include "cli/sim_outcome.h"
#include "cli/sim_result.h"
#include "cli/sim_scenario.h"
#include "fabric/scenario/setting.h"
#include "jobs/job_results.h"

namespace verbena::cli {

[[nodiscard]] bool is_job_file(const std::string& path);
// These functions are as for scenarios (sim_scenario.h).
[[nodiscard]] Expected<std::vector<fabric::Expectation>> expectations_for(const SimRequest& request,
                                                                          const jobs::Job& job);
[[nodiscard]] SimResult result_of(const std::string& title, const jobs::Job& job,
                                  const jobs::JobResults& results);
[[nodiscard]] Expected<jobs::Job> read_job_file(const std::string& path,
                                                const std::vector<fabric::Setting>& settings,
                                                Remarks remarks = Remarks::kSaid);
[[nodiscard]] Expected<void> write_job_results(const std::filesystem::path& folder,
                                               const jobs::Job& job,
                                               const jobs::JobResults& results);

// Runs the request's one job.
[[nodiscard]] Expected<SimOutcome> sim_job(const SimRequest& request,
                                           const std::vector<fabric::Setting>& settings);

}  // namespace verbena::cli
