#include "cli/sim_compare.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

std::string folder_name(std::string title) {
  std::ranges::replace_if(
      title, [](char c) { return c == '/' || c == ' ' || c == ':'; }, '_');
  return title;
}

Expected<SimColumn> column_of_job(SimRun& run, const std::string& output, const StopAsked& stop) {
  Expected<jobs::Job> job = read_job_file(run.scenario, run.settings);
  if (!job) return tl::unexpected(job.error());
  if (!output.empty()) job->keep = jobs::Keep::kAll;
  const jobs::JobResults results =
      run_job(*job, [&](const jobs::Progress&) { return run.was_interrupted |= stop(); });
  if (!output.empty())
    if (const auto done =
            write_job_results(fs::path(output) / folder_name(run.title), *job, results);
        !done)
      return tl::unexpected(done.error());
  return SimColumn{run.title, lines_of(*job, results)};
}

Expected<SimColumn> column_of(SimRun& run, const std::string& output, const StopAsked& stop) {
  if (is_job_file(run.scenario)) return column_of_job(run, output, stop);
  const Expected<fabric::Scenario> scenario = read_scenario_file(run.scenario, run.settings);
  if (!scenario) return tl::unexpected(scenario.error());
  fabric::Simulation simulation(*scenario);
  if (!simulation.mistake().empty()) return failure(kExitCannot, simulation.mistake());
  while (simulation.advance())
    if (stop()) break;
  const fabric::Summary summary = fabric::summarize(simulation);
  run.was_interrupted = summary.outcome == fabric::Outcome::kRunning;
  if (!output.empty())
    if (const auto done =
            write_results(fs::path(output) / folder_name(run.title), simulation, summary);
        !done)
      return tl::unexpected(done.error());
  return SimColumn{run.title, fabric::lines_of(summary)};
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
  const Expected<ShareEnd> end = run_all(runs, [&request](SimRun& run, const StopAsked& stop) {
    run.column = column_of(run, request.output, stop);
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
  outcome.output = table_text(columns, terminal_width());
  if (request.output.empty()) return outcome;
  if (const auto done = write_text(fs::path(request.output) / "table.csv", table_csv(columns));
      !done)
    return tl::unexpected(done.error());
  return outcome;
}

}  // namespace verbena::cli
