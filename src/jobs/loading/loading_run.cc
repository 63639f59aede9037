#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "fabric/nodes/simulated_nodes.h"
#include "jobs/loading/loading_config.h"
#include "jobs/loading/loading_programs.h"

namespace verbena::jobs {
namespace {

using fabric::SimulatedNodes;

constexpr u16 kChunkPort = 7474;
constexpr Duration kLoadingStretch = us(100);
constexpr Duration kLoadingPatience = sec(5);

// GPUs of the same part, by replica.
std::vector<u32> group_of(const LoadingConfig& config, u32 gpu) {
  std::vector<u32> group;
  for (u32 replica = 0; replica < config.replicas(); ++replica)
    group.push_back(replica * config.gpus_of_replica + gpu % config.gpus_of_replica);
  return group;
}

fabric::NodesConfig pairs_of(const LoadingConfig& config) {
  fabric::NodesConfig nodes;
  const RelayTree tree(config.replicas());
  for (u32 gpu = 0; gpu < config.gpus.size(); ++gpu) {
    nodes.pairs.push_back(
        {.active = config.gpus[gpu], .passive = config.sources[config.source_of(gpu)]});
    if (!config.relays) continue;
    const std::vector<u32> group = group_of(config, gpu);
    for (const u32 member : tree.neighbours_of(gpu / config.gpus_of_replica))
      nodes.pairs.push_back({.active = config.gpus[gpu], .passive = config.gpus[group[member]]});
  }
  return nodes;
}

struct LoadingPrograms {
  std::vector<std::unique_ptr<SourceProgram>> sources{};
  std::vector<std::unique_ptr<LoaderProgram>> loaders{};

  LoadingPrograms(const LoadingConfig& config, SimulatedNodes& nodes) {
    const auto address = [](fabric::NodeIndex host) {
      return fabric::node_address(host, kChunkPort);
    };
    for (const fabric::NodeIndex host : config.sources) {
      sources.push_back(std::make_unique<SourceProgram>(
          nodes.node(host), address(host), u64{config.simulated_chunks} * config.chunk_bytes));
      nodes.run_on(host, *sources.back());
    }
    for (u32 gpu = 0; gpu < config.gpus.size(); ++gpu) {
      LoaderProgram::Config loader{.self = address(config.gpus[gpu]),
                                   .source = address(config.sources[config.source_of(gpu)]),
                                   .member = gpu / config.gpus_of_replica,
                                   .chunks = config.simulated_chunks,
                                   .chunk_bytes = config.chunk_bytes};
      if (config.relays && config.replicas() > 1)
        for (const u32 other : group_of(config, gpu))
          loader.group.push_back(address(config.gpus[other]));
      loaders.push_back(std::make_unique<LoaderProgram>(nodes.node(config.gpus[gpu]), loader));
      nodes.run_on(config.gpus[gpu], *loaders.back());
    }
  }
  [[nodiscard]] u64 done() const {
    return static_cast<u64>(
        std::ranges::count_if(loaders, [](const auto& loader) { return loader->is_done(); }));
  }
  // Returns the share of the chunks of all GPUs that are there.
  [[nodiscard]] double part_done(u32 chunks) const {
    u64 missing = 0;
    for (const auto& loader : loaders) missing += loader->missing();
    return 1 - static_cast<double>(missing) / static_cast<double>(u64{chunks} * loaders.size());
  }
  [[nodiscard]] std::string mistake() const {
    for (const auto& loader : loaders)
      if (!loader->mistake().empty()) return loader->mistake();
    return "";
  }
};

std::string load_to_end(fabric::Network& network, const LoadingPrograms& programs, u32 chunks,
                        const Stop& stop) {
  const u64 all = programs.loaders.size();
  Time moved;
  u64 events = 0;
  for (Time end = Time() + kLoadingStretch; programs.done() < all; end = end + kLoadingStretch) {
    const bool has_more = network.run(end);
    if (!programs.mistake().empty()) return programs.mistake();
    const u64 now = network.counters().events;
    if (stop({end - Time(), now, [&] { return programs.part_done(chunks); }}))
      return std::string(kInterrupted);
    if (now != events) moved = end;
    events = now;
    if (programs.done() < all && (!has_more || end - moved > kLoadingPatience))
      return "nothing moves any more: GPUs wait for chunks that never come";
  }
  return "";
}

}  // namespace

LoadingResult run_loading(const LoadingConfig& config, const fabric::Topology& topology,
                          const fabric::NetworkConfig& network_config, const Stop& stop) {
  LoadingResult result;
  fabric::Network network(topology, network_config);
  SimulatedNodes nodes(network, pairs_of(config));
  if (!nodes.is_connected()) {
    result.mistake = "there is no path between two GPUs, or to a source";
    return result;
  }
  network.set_application(&nodes);
  const LoadingPrograms programs(config, nodes);
  result.mistake = load_to_end(network, programs, config.simulated_chunks, stop);
  for (const auto& loader : programs.loaders) {
    result.simulated = std::max(result.simulated, loader->done_at() - Time());
    result.source_bytes += u64{loader->from_source()} * config.chunk_bytes;
  }
  result.simulated_bytes = u64{config.simulated_chunks} * config.chunk_bytes;
  result.counters = network.counters();
  return result;
}

std::vector<fabric::Metric> metrics_of(const LoadingConfig& config, const LoadingResult& result) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const bool is_done = result.mistake.empty() && result.simulated != Duration();
  const double seconds = is_done ? result.simulated.seconds() : nothing;
  const double rate = static_cast<double>(result.simulated_bytes) / seconds;
  const bool is_whole = result.simulated_bytes >= config.part_bytes();
  return {{"load.time", is_whole ? seconds : static_cast<double>(config.part_bytes()) / rate},
          {"load.rate_of_gpu", rate},
          {"load.rate", rate * static_cast<double>(config.gpus.size())},
          {"load.rate_of_source", static_cast<double>(result.source_bytes) / seconds /
                                      static_cast<double>(config.sources.size())},
          {"load.part", static_cast<double>(config.part_bytes())},
          {"load.simulated_part", static_cast<double>(result.simulated_bytes)},
          {"load.simulated_time", seconds}};
}

std::string loading_text(const LoadingConfig& config, std::string_view technology,
                         const LoadingResult& result) {
  if (!result.mistake.empty()) return result.mistake + "\n";
  const auto metrics = metrics_of(config, result);
  const bool is_whole = result.simulated_bytes >= config.part_bytes();
  const std::string simulated =
      is_whole ? "all of it was simulated\n"
               : fmt::format(
                     "simulated were the first {:.1f} MB of each GPU, in {:.3f} ms; the "
                     "time is that of their rate\n",
                     metrics[5].value / 1e6, metrics[6].value * 1e3);
  return fmt::format(
      "{}: {:.4g} GB onto {} GPUs, {} replicas of {}, from {} sources, {}{}\n"
      "load time       {:.4g} s, of {:.3g} GB for each GPU\n"
      "rate of a GPU   {:.2f} GB/s\n"
      "of all GPUs     {:.1f} GB/s\n"
      "of a source     {:.2f} GB/s\n"
      "{}",
      config.model, static_cast<double>(config.bytes) / 1e9, config.gpus.size(), config.replicas(),
      config.gpus_of_replica, config.sources.size(), technology,
      config.relays ? ", which give each other chunks" : "", metrics[0].value,
      metrics[4].value / 1e9, metrics[1].value / 1e9, metrics[2].value / 1e9,
      metrics[3].value / 1e9, simulated);
}

}  // namespace verbena::jobs
