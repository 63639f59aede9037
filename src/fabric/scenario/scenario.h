// Scenario: a simulation as a user describes it in YAML, read and checked: the network, its
// traffic, how long it runs. docs/simulator.md has all keys.
#pragma once

#include <string>
#include <vector>

#include "fabric/hpcc_ns3/words.h"
#include "fabric/network.h"
#include "fabric/scenario/expectation.h"
#include "fabric/scenario/file_reader.h"
#include "fabric/scenario/setting.h"
#include "fabric/topologies/plan.h"

namespace verbena::fabric {

struct Scenario {
  std::string name;  // of the file
  Plan plan;
  NetworkConfig network;
  std::vector<Flow> flows;                  // in the order of the file
  Time end = Time::never();                 // never: when all flows have ended
  std::vector<Expectation> expectations{};  // `assert`
  std::string text;                         // the file, with what was set besides
  // Paths of settings of other technologies; only where the technology was set besides.
  std::vector<std::string> left_out;
};

// ScenarioUse: the purpose of a scenario: live processes need no workload.
enum class ScenarioUse : u8 { kSimulation, kLiveFabric };

// `name`: of the file, for errors. `settings` replace values of the file, or add to them.
[[nodiscard]] Parsed<Scenario> read_scenario(const std::string& name, const std::string& text,
                                             const std::vector<Setting>& settings,
                                             const FileReader& read_file,
                                             ScenarioUse use = ScenarioUse::kSimulation);

}  // namespace verbena::fabric
