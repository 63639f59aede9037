// Scenarios in YAML: read from their files, run, and their results written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/requests.h"
#include "cli/sim_result.h"
#include "cli/stop_signal.h"
#include "fabric/results/summary.h"

namespace verbena::cli {

// Remarks: whether the reader reports on standard error which settings it left out or rounded.
enum class Remarks { kSaid, kUnsaid };
// "": the built-in example.
[[nodiscard]] Expected<fabric::Scenario> read_scenario_file(
    const std::string& path, const std::vector<fabric::Setting>& settings,
    fabric::ScenarioUse use = fabric::ScenarioUse::kSimulation, Remarks remarks = Remarks::kSaid);

// Those of the request and of the file. An error: one of them names what there is none of.
[[nodiscard]] Expected<std::vector<fabric::Expectation>> expectations_for(
    const SimRequest& request, const fabric::Scenario& scenario);
[[nodiscard]] SimResult result_of(const std::string& title, const fabric::Scenario& scenario,
                                  const fabric::Summary& summary);
// --junit.
[[nodiscard]] Expected<void> write_junit(const SimRequest& request,
                                         const std::vector<SimResult>& results);

// Runs it to its end, or until it is told to stop.
void run_to_end(fabric::Simulation& simulation, const StopSignal& stop);

// results.sqlite, report.html, summary.txt, and capture.pcapng where frames were captured. The
// folder is made where it is missing.
[[nodiscard]] Expected<void> write_results(const std::filesystem::path& folder,
                                           const fabric::Simulation& simulation,
                                           const fabric::Summary& summary);

}  // namespace verbena::cli
