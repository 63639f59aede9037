// Scenarios in YAML: read from their files, run, and their results written.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "cli/stop_signal.h"
#include "fabric/results/summary.h"

namespace verbena::cli {

// "": the built-in example.
[[nodiscard]] Expected<fabric::Scenario> read_scenario_file(
    const std::string& path, const std::vector<fabric::Setting>& settings,
    fabric::ScenarioUse use = fabric::ScenarioUse::kSimulation);

// Runs it to its end, or until it is told to stop.
void run_to_end(fabric::Simulation& simulation, const StopSignal& stop);

// results.sqlite, report.html, summary.txt, and capture.pcapng where frames were captured. The
// folder is made where it is missing.
[[nodiscard]] Expected<void> write_results(const std::filesystem::path& folder,
                                           const fabric::Simulation& simulation,
                                           const fabric::Summary& summary);

}  // namespace verbena::cli
