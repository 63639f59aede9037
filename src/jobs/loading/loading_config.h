// What a loading job is: a model that many GPUs load from few sources, each its part of it. GPUs
// with the same part are a group: with relays, each of them reads some chunks from the source, and
// the others read these from it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/time.h"
#include "fabric/network.h"
#include "fabric/results/metric.h"
#include "jobs/stop.h"

namespace verbena::jobs {

struct LoadingConfig {
  std::string model{};
  u64 octets = 0;           // of the whole model
  u32 gpus_of_replica = 1;  // each has its own part
  u32 chunk_octets = 4u << 20;
  // Of each GPU's part so many chunks are simulated. The rate of the rest is like theirs.
  u32 simulated_chunks = 8;
  bool relays = true;
  std::vector<fabric::NodeIndex> gpus{}, sources{};

  [[nodiscard]] u64 part_octets() const { return (octets + gpus_of_replica - 1) / gpus_of_replica; }
  // So that no more than a part is simulated.
  void limit_simulation() {
    chunk_octets = static_cast<u32>(std::min<u64>(chunk_octets, part_octets()));
    const u64 chunks = (part_octets() + chunk_octets - 1) / chunk_octets;
    simulated_chunks = static_cast<u32>(std::min<u64>(simulated_chunks, chunks));
  }
  [[nodiscard]] u32 replicas() const { return static_cast<u32>(gpus.size()) / gpus_of_replica; }
  [[nodiscard]] u32 source_of(u32 gpu) const { return gpu % static_cast<u32>(sources.size()); }
};

struct LoadingResult {
  std::string mistake{};     // "": none
  Duration simulated{};      // until the last GPU has its chunks
  u64 simulated_octets = 0;  // of one GPU
  u64 source_octets = 0;     // that all sources have sent, of the simulated ones
  fabric::Counters counters{};
};

[[nodiscard]] LoadingResult run_loading(const LoadingConfig& config,
                                        const fabric::Topology& topology,
                                        const fabric::NetworkConfig& network, const Stop& stop);
// "load.time" in seconds, of the whole model; rates in octets a second.
[[nodiscard]] std::vector<fabric::Metric> metrics_of(const LoadingConfig& config,
                                                     const LoadingResult& result);
[[nodiscard]] std::string loading_text(const LoadingConfig& config, std::string_view technology,
                                       const LoadingResult& result);

}  // namespace verbena::jobs
