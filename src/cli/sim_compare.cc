#include "cli/sim_compare.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/comparison_page.h"
#include "cli/sim_job.h"
#include "cli/sim_scenario.h"
#include "cli/sim_share.h"
#include "cli/sim_table.h"
#include "cli/text_file.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostRuns = 10'000;
constexpr std::size_t kPlainWidth = 100;

// Every choice of one value of each sweep, the last one changing fastest.
std::vector<std::vector<fabric::Setting>> grid_of(const std::vector<Sweep>& sweeps) {
  std::vector<std::vector<fabric::Setting>> grid(1);
  for (const Sweep& sweep : sweeps) {
    std::vector<std::vector<fabric::Setting>> finer;
    for (const std::vector<fabric::Setting>& point : grid)
      for (const std::string& value : sweep.values) {
        finer.push_back(point);
        finer.back().push_back({sweep.key, value});
      }
    grid = std::move(finer);
    if (grid.size() > kMostRuns) break;
  }
  return grid;
}

std::string title_of(const SimRequest& request, const std::string& scenario,
                     const std::vector<fabric::Setting>& point) {
  std::vector<std::string> parts;
  if (request.scenarios.size() > 1) parts.push_back(fs::path(scenario).stem().string());
  for (const fabric::Setting& setting : point) parts.push_back(setting.key + "=" + setting.value);
  return fmt::format("{}", fmt::join(parts, " "));
}

std::vector<SimRun> runs_of(const SimRequest& request) {
  std::vector<SimRun> runs;
  const std::vector<std::string> scenarios =
      request.scenarios.empty() ? std::vector<std::string>{""} : request.scenarios;
  for (const std::string& scenario : scenarios)
    for (const std::vector<fabric::Setting>& point : grid_of(request.sweeps)) {
      SimRun run;
      run.scenario = scenario;
      run.settings = request.settings;
      if (request.seed) run.settings.push_back({"seed", std::to_string(*request.seed)});
      run.settings.insert(run.settings.end(), point.begin(), point.end());
      run.title = title_of(request, scenario, point);
      runs.push_back(std::move(run));
    }
  // Scenarios of one name are told apart by their paths.
  for (SimRun& run : runs)
    if (std::ranges::count(runs, run.title, &SimRun::title) > 1 && request.sweeps.empty())
      run.title = run.scenario;
  return runs;
}

// "incast.yaml: kmin, kmax", "a.yaml, b.yaml"
std::string title_of(const SimRequest& request) {
  std::vector<std::string> keys;
  for (const Sweep& sweep : request.sweeps) keys.push_back(sweep.key);
  const std::string files =
      request.scenarios.empty() ? "example" : fmt::format("{}", fmt::join(request.scenarios, ", "));
  return keys.empty() ? files : fmt::format("{}: {}", files, fmt::join(keys, ", "));
}

std::string folder_name(std::string title) {
  std::ranges::replace_if(
      title, [](char c) { return c == '/' || c == ' ' || c == ':'; }, '_');
  return title;
}

Expected<SimColumn> column_of_job(const SimRequest& request, SimRun& run, const StopAsked& stop) {
  const std::string& output = request.output;
  Expected<jobs::Job> job = read_job_file(run.scenario, run.settings);
  if (!job) return tl::unexpected(job.error());
  const auto expectations = expectations_for(request, *job);
  if (!expectations) return tl::unexpected(expectations.error());
  if (!output.empty()) job->keep = jobs::Keep::kAll;
  const jobs::JobResults results =
      run_job(*job, [&](const jobs::Progress&) { return run.was_interrupted |= stop(); });
  if (!output.empty())
    if (const auto done =
            write_job_results(fs::path(output) / folder_name(run.title), *job, results);
        !done)
      return tl::unexpected(done.error());
  SimResult result = result_of(run.title, *job, results);
  judge(*expectations, result);
  return result;
}

Expected<SimColumn> column_of(const SimRequest& request, SimRun& run, const StopAsked& stop) {
  const std::string& output = request.output;
  if (is_job_file(run.scenario)) return column_of_job(request, run, stop);
  const Expected<fabric::Scenario> scenario = read_scenario_file(run.scenario, run.settings);
  if (!scenario) return tl::unexpected(scenario.error());
  const auto expectations = expectations_for(request, *scenario);
  if (!expectations) return tl::unexpected(expectations.error());
  fabric::Simulation simulation(*scenario);
  if (!simulation.mistake().empty()) return failure(kExitCannot, simulation.mistake());
  if (!output.empty()) simulation.log_paths();
  while (simulation.advance())
    if (stop()) break;
  const fabric::Summary summary = fabric::summarize(simulation);
  run.was_interrupted = summary.outcome == fabric::Outcome::kRunning;
  if (!output.empty())
    if (const auto done =
            write_results(fs::path(output) / folder_name(run.title), simulation, summary);
        !done)
      return tl::unexpected(done.error());
  SimResult result = result_of(run.title, *scenario, summary);
  judge(*expectations, result);
  return result;
}

// Reads what a run is made of, and nothing else, so that a mistake in the last of many is found
// before the first has begun.
Expected<void> check(const SimRequest& request, const SimRun& run) {
  if (is_job_file(run.scenario)) {
    const Expected<jobs::Job> job = read_job_file(run.scenario, run.settings, Remarks::kUnsaid);
    if (!job) return tl::unexpected(job.error());
    const auto expectations = expectations_for(request, *job);
    return expectations ? Expected<void>() : tl::unexpected(expectations.error());
  }
  const Expected<fabric::Scenario> scenario = read_scenario_file(
      run.scenario, run.settings, fabric::ScenarioUse::kSimulation, Remarks::kUnsaid);
  if (!scenario) return tl::unexpected(scenario.error());
  const auto expectations = expectations_for(request, *scenario);
  return expectations ? Expected<void>() : tl::unexpected(expectations.error());
}

Expected<void> check_all(const SimRequest& request, const std::vector<SimRun>& runs) {
  if (!request.output.empty())
    if (const auto done = make_writable(request.output); !done) return done;
  if (!request.junit.empty())
    if (const auto done = write_text(request.junit, ""); !done) return done;
  for (const SimRun& run : runs)
    if (const auto done = check(request, run); !done) return done;
  return {};
}

std::size_t terminal_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0)
    return size.ws_col;
  return kPlainWidth;
}

}  // namespace

Expected<SimOutcome> sim_compare(const SimRequest& request) {
  std::vector<SimRun> runs = runs_of(request);
  if (runs.size() > kMostRuns)
    return failure(kExitCannot, fmt::format("there are more than {} runs", kMostRuns));
  if (const auto done = check_all(request, runs); !done) return tl::unexpected(done.error());
  const Expected<ShareEnd> end = run_all(runs, [&request](SimRun& run, const StopAsked& stop) {
    run.column = column_of(request, run, stop);
  });
  if (!end) return tl::unexpected(end.error());
  SimOutcome outcome;
  if (*end == ShareEnd::kElsewhere) return outcome;
  for (const SimRun& run : runs)
    if (run.has_run && !run.column) return tl::unexpected(run.column.error());
  std::vector<SimColumn> columns;
  outcome.was_interrupted = *end == ShareEnd::kStopped;
  for (const SimRun& run : runs) {
    outcome.was_interrupted |= run.was_interrupted;
    if (run.has_run) columns.push_back(*run.column);
  }
  if (columns.empty()) return outcome;
  for (const SimColumn& column : columns)
    for (const std::string& unmet : column.unmet)
      outcome.unmet.push_back(column.title + ": " + unmet);
  outcome.output = request.format == OutputFormat::kJSON ? json_of(columns)
                                                         : table_text(columns, terminal_width());
  if (const auto done = write_junit(request, columns); !done) return tl::unexpected(done.error());
  if (request.output.empty()) return outcome;
  const fs::path folder = request.output;
  if (const auto done = write_text(folder / "table.csv", table_csv(columns)); !done)
    return tl::unexpected(done.error());
  if (const auto done =
          write_text(folder / "table.html", comparison_page(title_of(request), columns));
      !done)
    return tl::unexpected(done.error());
  return outcome;
}

}  // namespace verbena::cli
