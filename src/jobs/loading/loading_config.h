// A loading job: many GPUs load a model from few sources, each GPU its part of the model. GPUs with
// the same part are a group. With relays each GPU of a group reads some chunks from the source, and
// the others read those chunks from that GPU.
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
  u64 bytes = 0;            // of the whole model
  u32 gpus_of_replica = 1;  // each has its own part
  u32 chunk_bytes = 4u << 20;
  // The number of chunks of each GPU's part that are simulated. The rest has the same rate.
  u32 simulated_chunks = 8;
  bool relays = true;
  std::vector<fabric::NodeIndex> gpus{}, sources{};

  [[nodiscard]] u64 part_bytes() const { return (bytes + gpus_of_replica - 1) / gpus_of_replica; }
  // Limits the simulated data to a GPU's part.
  void limit_simulation() {
    chunk_bytes = static_cast<u32>(std::min<u64>(chunk_bytes, part_bytes()));
    const u64 chunks = (part_bytes() + chunk_bytes - 1) / chunk_bytes;
    simulated_chunks = static_cast<u32>(std::min<u64>(simulated_chunks, chunks));
  }
  [[nodiscard]] u32 replicas() const { return static_cast<u32>(gpus.size()) / gpus_of_replica; }
  [[nodiscard]] u32 source_of(u32 gpu) const { return gpu % static_cast<u32>(sources.size()); }
};

struct LoadingResult {
  std::string mistake{};    // "": none
  Duration simulated{};     // until the last GPU has its chunks
  u64 simulated_bytes = 0;  // of one GPU
  u64 source_bytes = 0;     // that all sources have sent, of the simulated ones
  fabric::Counters counters{};
};

[[nodiscard]] LoadingResult run_loading(const LoadingConfig& config,
                                        const fabric::Topology& topology,
                                        const fabric::NetworkConfig& network, const Stop& stop);
// "load.time" in seconds, of the whole model; rates in bytes a second.
[[nodiscard]] std::vector<fabric::Metric> metrics_of(const LoadingConfig& config,
                                                     const LoadingResult& result);
[[nodiscard]] std::string loading_text(const LoadingConfig& config, std::string_view technology,
                                       const LoadingResult& result);

}  // namespace verbena::jobs
