// A serving job: an LLM in a pool of prefill instances and one of decode instances, and requests.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "fabric/topology.h"
#include "transfer/kv_layout.h"
#include "transfer/request_trace.h"

namespace verbena::jobs {

struct ServingConfig {
  transfer::KVModel model{};
  transfer::RequestTrace trace{};
  u32 prefill = 1, decode = 1;    // instances
  u32 gpus = 8;                   // of one, which share its model by tensor parallelism
  double prefill_flops = 400e12;  // that a GPU achieves
  double memory_rate = 2.5e12;    // bytes a second, likewise
  u32 block_tokens = 256;
  u64 cache_tokens = 1 << 20;  // that an instance's cache holds
  // NICs of each instance that are simulated: their transfers are alike. The first GPUs'.
  u32 simulated_gpus = 1;
  bool by_layer = true;  // each layer's blocks leave when it is computed; else all at the end

  // Hosts: [instance][simulated GPU], first those of prefill.
  std::vector<fabric::NodeIndex> hosts{};
  [[nodiscard]] fabric::NodeIndex host_of(u32 instance, u32 gpu) const {
    return hosts[instance * simulated_gpus + gpu];
  }
};

// A request, and what is known of it before anything is transferred.
struct PlannedRequest {
  u32 prefill = 0, decode = 0;     // instances of either pool
  Time arrival{}, begin{}, end{};  // of its prefill
  u32 computed_tokens = 0;         // the others were in the prefill instance's cache
  std::vector<u32> from{}, to{};   // blocks that are transferred, in either cache
  u32 shared_blocks = 0;           // the others, which the decode instance has
};

struct ServingPlan {
  std::vector<PlannedRequest> requests{};
  u64 computed_tokens = 0, reused_tokens = 0;
  u64 evictions = 0;
};

// Plans the requests. Each goes to the prefill instance that is free first, and to the decode
// instance with the fewest requests. Sets *mistake if the plan is impossible.
[[nodiscard]] ServingPlan plan_serving(const ServingConfig& config, std::string* mistake);
[[nodiscard]] transfer::KVLayout cache_layout(const ServingConfig& config);
// Returns the time of one token, by the model's size and the memory's rate.
[[nodiscard]] Duration decode_step(const ServingConfig& config);

}  // namespace verbena::jobs
