#include "cli/sim_folder.h"

#include <sys/resource.h>
#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "cli/sim_progress.h"
#include "cli/stop_signal.h"
#include "cli/text_file.h"
#include "fabric/hpcc_ns3/results.h"
#include "fabric/hpcc_ns3/scenario.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;
namespace hpcc = fabric::hpcc_ns3;
using WallClock = std::chrono::steady_clock;
constexpr Duration kSlice = us(100);  // simulated between two looks at the clock

double seconds_since(WallClock::time_point start) {
  return std::chrono::duration<double>(WallClock::now() - start).count();
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// The model is started in a folder above, and its settings name files from there.
Expected<std::string> read_named(const fs::path& folder, const fs::path& name) {
  Expected<std::string> text = read_text(folder / name);
  if (text || !name.has_parent_path()) return text;
  if (Expected<std::string> beside = read_text(folder / name.filename())) return beside;
  return text;
}

Expected<hpcc::Scenario> read_scenario(const fs::path& folder) {
  hpcc::Scenario scenario;
  const auto config_text = read_text(folder / "config.txt");
  if (!config_text) return tl::unexpected(config_text.error());
  auto config = hpcc::parse_config("config.txt", *config_text);
  if (!config) return cannot(config.error().message);
  scenario.config = *std::move(config);

  const std::string& topology_file = scenario.config.topology_file;
  const auto topology_text = read_named(folder, topology_file);
  if (!topology_text) return tl::unexpected(topology_text.error());
  auto topology = hpcc::parse_topology(topology_file, *topology_text);
  if (!topology) return cannot(topology.error().message);
  scenario.topology = *std::move(topology);

  const std::string& flow_file = scenario.config.flow_file;
  const auto flow_text = read_named(folder, flow_file);
  if (!flow_text) return tl::unexpected(flow_text.error());
  auto flows = hpcc::parse_flows(flow_file, *flow_text, scenario.topology);
  if (!flows) return cannot(flows.error().message);
  scenario.flows = *std::move(flows);
  if (const std::string missing = hpcc::check(scenario); !missing.empty())
    return cannot("config.txt: " + missing);
  return scenario;
}

Expected<void> write_results(const fs::path& folder, const hpcc::Results& results,
                             const std::string& summary) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return cannot(fmt::format("cannot make {}: {}", folder.string(), error.message()));
  if (const auto done = write_text(folder / "fct.txt", results.fct()); !done) return done;
  if (const auto done = write_text(folder / "pfc.txt", results.pfc()); !done) return done;
  return write_text(folder / "stdout.txt", summary);
}

Expected<void> add_flows(const hpcc::Scenario& scenario, fabric::Network& network) {
  for (const fabric::Flow& flow : scenario.flows)
    if (!network.add_flow(flow))
      return cannot(fmt::format("{}: there is no way from host {} to {}", scenario.config.flow_file,
                                flow.source, flow.destination));
  return {};
}

Time first_start(const hpcc::Scenario& scenario) {
  Time first = Time() + scenario.config.stop;
  for (const fabric::Flow& flow : scenario.flows) first = std::min(first, flow.start);
  return first;
}

// Returns false if a signal stopped the run before its end, at `now`.
bool run_to_end(const hpcc::Scenario& scenario, fabric::Network& network, Time& now) {
  const StopSignal stop;
  const Time end = Time() + scenario.config.stop;
  SimProgress progress(network, scenario.flows, Time::never());
  WallClock::time_point next_look = WallClock::now() + kBetweenLooks;
  now = first_start(scenario);
  while (network.run(now) && now < end) {
    now = std::min(now + kSlice, end);
    if (WallClock::now() < next_look) continue;
    next_look = WallClock::now() + kBetweenLooks;
    progress.show(now);
    if (stop.wait(Duration())) return false;
  }
  return true;
}

}  // namespace

Expected<SimOutcome> sim_folder(const SimRequest& request) {
  const WallClock::time_point begin = WallClock::now();
  const Expected<hpcc::Scenario> scenario = read_scenario(request.scenarios.front());
  if (!scenario) return tl::unexpected(scenario.error());
  fabric::NetworkConfig config =
      hpcc::network_config(*scenario, request.seed.value_or(hpcc::kUsualSeed));
  config.threads = request.threads;
  fabric::Network network(scenario->topology, config);
  hpcc::Results results(*scenario, network);
  network.set_trace(&results);
  if (const auto added = add_flows(*scenario, network); !added)
    return tl::unexpected(added.error());
  hpcc::Results::Cost cost;
  cost.setup_seconds = seconds_since(begin);

  const WallClock::time_point start = WallClock::now();
  Time now;
  SimOutcome outcome;
  outcome.was_interrupted = !run_to_end(*scenario, network, now);
  cost.run_seconds = seconds_since(start);
  cost.peak_mebibytes = peak_mebibytes();
  outcome.output = results.summary(cost);
  for (const std::string& difference : hpcc::differences(scenario->config))
    outcome.output += fmt::format("NOTE config.txt: {}\n", difference);
  if (outcome.was_interrupted)
    outcome.output += fmt::format("INTERRUPTED at_ns {}: the results are partial\n", now.ns());
  if (!request.output.empty())
    if (const auto done = write_results(request.output, results, outcome.output); !done)
      return tl::unexpected(done.error());
  return outcome;
}

}  // namespace verbena::cli
