// Runs a serving job on a simulated network, and tells what its users see.
#pragma once

#include "fabric/network.h"
#include "fabric/results/metric.h"
#include "jobs/serving/serving_config.h"
#include "jobs/stop.h"

namespace verbena::jobs {

struct ServedRequest {
  Duration queue{};  // before its prefill begins
  Duration prefill{};
  Duration transfer{};  // after its prefill, until all blocks are at the decode instance
  Duration ttft{};      // all of that, and the first step of decoding
};

struct ServingResult {
  std::string mistake{};  // "": none
  std::vector<ServedRequest> requests{};
  ServingPlan plan{};
  Duration time{};            // until the last first token
  u64 transferred_bytes = 0;  // by all GPUs of all instances
  fabric::Counters counters{};
};

// `topology` outlives the run.
[[nodiscard]] ServingResult run_serving(const ServingConfig& config,
                                        const fabric::Topology& topology,
                                        const fabric::NetworkConfig& network, const Stop& stop);

// "ttft.p50" and others, in seconds; rates. Without numbers if there are no requests.
[[nodiscard]] std::vector<fabric::Metric> metrics_of(const ServingConfig& config,
                                                     const ServingResult& result);
[[nodiscard]] std::string serving_csv(const ServingResult& result);
[[nodiscard]] std::string serving_text(const ServingConfig& config, std::string_view technology,
                                       const ServingResult& result);

}  // namespace verbena::jobs
