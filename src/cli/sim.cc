#include "cli/sim.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "cli/mpi_ranks.h"
#include "cli/sim_compare.h"
#include "cli/sim_example.h"
#include "cli/sim_folder.h"
#include "cli/sim_job.h"
#include "cli/sim_result.h"
#include "cli/sim_scenario.h"
#include "cli/text_file.h"

namespace verbena::cli {
namespace {

std::vector<fabric::Setting> settings_of(const SimRequest& request) {
  std::vector<fabric::Setting> settings = request.settings;
  if (request.seed) settings.push_back({"seed", std::to_string(*request.seed)});
  return settings;
}

Expected<std::vector<u32>> links_of(const SimRequest& request, const fabric::Scenario& scenario) {
  std::vector<u32> links;
  for (const std::string& name : request.captures) {
    const std::optional<u32> link = scenario.plan.link_named(name);
    if (!link)
      return failure(kExitCannot,
                     fmt::format("--capture {}: there is no such link; links are named "
                                 "as {}",
                                 name, scenario.plan.link_name(0)));
    links.push_back(*link);
  }
  return links;
}

Expected<SimOutcome> run_one(const SimRequest& request) {
  const bool is_example = request.scenarios.empty();
  const std::string name = is_example ? "" : request.scenarios.front();
  Expected<fabric::Scenario> scenario = read_scenario_file(name, settings_of(request));
  if (!scenario) return tl::unexpected(scenario.error());
  const auto expectations = expectations_for(request, *scenario);
  if (!expectations) return tl::unexpected(expectations.error());
  scenario->network.threads = request.threads;
  fabric::Simulation simulation(*scenario);
  if (!simulation.mistake().empty()) return failure(kExitCannot, simulation.mistake());
  const Expected<std::vector<u32>> links = links_of(request, *scenario);
  if (!links) return tl::unexpected(links.error());
  if (!links->empty()) simulation.capture(*links);
  if (!request.output.empty()) simulation.log_paths();
  const StopSignal stop;
  run_to_end(simulation, stop);
  const fabric::Summary summary = fabric::summarize(simulation);
  if (!request.output.empty())
    if (const auto done = write_results(request.output, simulation, summary); !done)
      return tl::unexpected(done.error());
  SimResult result = result_of(is_example ? "example" : name, *scenario, summary);
  judge(*expectations, result);
  SimOutcome outcome;
  outcome.was_interrupted = summary.outcome == fabric::Outcome::kRunning;
  outcome.unmet = result.unmet;
  if (const auto done = write_junit(request, {result}); !done) return tl::unexpected(done.error());
  if (request.format == OutputFormat::kJSON) {
    outcome.output = json_of(result);
    return outcome;
  }
  outcome.output = fabric::text_of(summary, simulation);
  if (is_example)
    outcome.output =
        fmt::format("{}{}\n{}{}", kExampleBefore, scenario->text, outcome.output, kExampleAfter);
  return outcome;
}

Expected<SimOutcome> run_file(const SimRequest& request) {
  if (request.scenarios.empty() || !is_job_file(request.scenarios.front())) return run_one(request);
  return sim_job(request, settings_of(request));
}

}  // namespace

namespace {

// mpirun ends all processes when one has failed. What fails in all is told by the first, which the
// others give time to do so; what fails in one, by that one.
constexpr std::chrono::seconds kTimeForTheFirst(3);

// Checks before any work that the outputs can be written.
Expected<void> check_outputs(const SimRequest& request) {
  if (!request.output.empty())
    if (const auto done = make_writable(request.output); !done) return done;
  if (request.junit.empty()) return {};
  return write_text(request.junit, "");
}

Expected<SimOutcome> sim_any(const SimRequest& request) {
  const bool has_folder = std::ranges::any_of(request.scenarios, [](const std::string& scenario) {
    return std::filesystem::is_directory(scenario);
  });
  if (has_folder &&
      (request.scenarios.size() > 1 || !request.settings.empty() || !request.sweeps.empty()))
    return failure(kExitCannot,
                   "--set, --sweep and --compare are for scenarios in YAML, and this is a folder");
  if (!request.captures.empty() &&
      (has_folder || !request.sweeps.empty() || request.scenarios.size() > 1))
    return failure(kExitCannot, "--capture is for one scenario in YAML");
  const auto jobs = std::ranges::count_if(request.scenarios, is_job_file);
  if (!has_folder && jobs > 0 && !request.captures.empty())
    return failure(kExitCannot, "--capture is not for jobs");
  if (!has_folder && jobs > 0 && static_cast<std::size_t>(jobs) < request.scenarios.size())
    return failure(kExitCannot, "--compare: some are jobs, some are scenarios");
  const bool is_for_programs = request.format == OutputFormat::kJSON ||
                               !request.expectations.empty() || !request.junit.empty();
  if (has_folder && is_for_programs)
    return failure(kExitCannot,
                   "--json, --expect and --junit are for scenarios in YAML, and this is a folder");
  if (!request.sweeps.empty() || request.scenarios.size() > 1) return sim_compare(request);
  if (const auto place = mpi_place())
    return failure(kExitCannot, fmt::format("one run is not shared out to the {} processes of "
                                            "mpirun: use --sweep or --compare, or no mpirun",
                                            place->size));
  if (has_folder) return sim_folder(request);
  if (const auto done = check_outputs(request); !done) return tl::unexpected(done.error());
  return run_file(request);
}

}  // namespace

Expected<SimOutcome> sim(const SimRequest& request) {
  Expected<SimOutcome> outcome = sim_any(request);
  const std::optional<MPIPlace> place = mpi_place();
  if (!outcome && place && place->rank != 0) {
    std::this_thread::sleep_for(kTimeForTheFirst);
    if (std::string& message = outcome.error().message; !message.empty())
      message += fmt::format(" (rank {} of {})", place->rank, place->size);
  }
  return outcome;
}

}  // namespace verbena::cli
