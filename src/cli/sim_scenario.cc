#include "cli/sim_scenario.h"

#include <chrono>

#include <fmt/format.h>

#include "cli/sim_example.h"
#include "cli/sim_progress.h"
#include "cli/text_file.h"
#include "fabric/results/database.h"
#include "fabric/results/report.h"
#include "fabric/scenario/other_technologies.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
using WallClock = std::chrono::steady_clock;

}  // namespace

Expected<fabric::Scenario> read_scenario_file(const std::string& path,
                                              const std::vector<fabric::Setting>& settings,
                                              fabric::ScenarioUse use, Remarks remarks) {
  std::string text(kExampleScenario);
  if (!path.empty()) {
    Expected<std::string> read = read_text(path);
    if (!read) return tl::unexpected(read.error());
    text = *std::move(read);
  }
  const fs::path folder = fs::path(path).parent_path();
  const fabric::FileReader read_file =
      [&folder](const std::string& name) -> fabric::Parsed<std::string> {
    Expected<std::string> file = read_text(folder / name);
    if (!file) return tl::unexpected(fabric::InputError{file.error().message});
    return *std::move(file);
  };
  auto scenario =
      fabric::read_scenario(path.empty() ? "example" : path, text, settings, read_file, use);
  if (!scenario) return cannot(scenario.error().message);
  if (remarks == Remarks::kUnsaid) return *std::move(scenario);
  if (!scenario->left_out.empty())
    fmt::print(stderr, "{}: {}\n", path.empty() ? "example" : path,
               left_out_text(scenario->network.technology, scenario->left_out));
  for (const std::string& note : scenario->plan.notes)
    fmt::print(stderr, "{}: {}\n", path.empty() ? "example" : path, note);
  return *std::move(scenario);
}

Expected<std::vector<fabric::Expectation>> expectations_for(const SimRequest& request,
                                                            const fabric::Scenario& scenario) {
  Expected<std::vector<fabric::Expectation>> all = expectations_of(request.expectations);
  if (!all) return all;
  all->insert(all->end(), scenario.expectations.begin(), scenario.expectations.end());
  if (const auto done = check_names(*all, fabric::metrics_of(fabric::Summary{})); !done)
    return tl::unexpected(done.error());
  return all;
}

SimResult result_of(const std::string& title, const fabric::Scenario& scenario,
                    const fabric::Summary& summary) {
  return {.title = title,
          .lines = fabric::lines_of(summary),
          .metrics = fabric::metrics_of(summary),
          .expected = {},
          .unmet = {},
          .notes = scenario.plan.notes};
}

Expected<void> write_junit(const SimRequest& request, const std::vector<SimResult>& results) {
  if (request.junit.empty()) return {};
  const std::string suite = request.scenarios.empty() ? "example" : request.scenarios.front();
  return write_text(request.junit, junit_of("verbena sim " + suite, results));
}

void run_to_end(fabric::Simulation& simulation, const StopSignal& stop) {
  const fabric::Scenario& scenario = simulation.scenario();
  SimProgress progress(simulation.network(), scenario.flows, scenario.end);
  WallClock::time_point next_look = WallClock::now() + kBetweenLooks;
  while (simulation.advance()) {
    const WallClock::time_point now = WallClock::now();
    if (now < next_look) continue;
    next_look = now + kBetweenLooks;
    progress.show(simulation.now());
    if (stop.wait(Duration())) return;
  }
}

Expected<void> write_results(const fs::path& folder, const fabric::Simulation& simulation,
                             const fabric::Summary& summary) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return cannot(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  if (simulation.captured()) {
    const std::vector<u8>& file = simulation.captured()->file();
    if (const auto done = write_text(folder / "capture.pcapng", {file.begin(), file.end()}); !done)
      return done;
  }
  const std::string failed = fabric::write_database(folder / "results.sqlite", simulation, summary);
  if (!failed.empty()) return cannot(failed);
  if (const auto done =
          write_text(folder / "report.html", fabric::report_html(simulation, summary));
      !done)
    return done;
  return write_text(folder / "summary.txt", fabric::text_of(summary, simulation));
}

}  // namespace verbena::cli
