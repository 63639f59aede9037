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
// Reads the scenario. If `path` is "", returns the built-in example.
[[nodiscard]] Expected<fabric::Scenario> read_scenario_file(
    const std::string& path, const std::vector<fabric::Setting>& settings,
    fabric::ScenarioUse use = fabric::ScenarioUse::kSimulation, Remarks remarks = Remarks::kSaid);

// Returns the expectations of the request and of the file, or an error if one of them names an
// unknown value.
[[nodiscard]] Expected<std::vector<fabric::Expectation>> expectations_for(
    const SimRequest& request, const fabric::Scenario& scenario);
[[nodiscard]] SimResult result_of(const std::string& title, const fabric::Scenario& scenario,
                                  const fabric::Summary& summary);
// Writes the file of --junit.
[[nodiscard]] Expected<void> write_junit(const SimRequest& request,
                                         const std::vector<SimResult>& results);

// Runs the simulation to its end, or until a signal.
void run_to_end(fabric::Simulation& simulation, const StopSignal& stop);

// Writes results.sqlite, report.html, summary.txt, and capture.pcapng if frames were captured.
// Makes the folder if it is missing.
[[nodiscard]] Expected<void> write_results(const std::filesystem::path& folder,
                                           const fabric::Simulation& simulation,
                                           const fabric::Summary& summary);

}  // namespace verbena::cli
