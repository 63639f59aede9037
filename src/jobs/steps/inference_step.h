// InferenceStep: what each GPU does to serve one batch of requests with a transformer that tensor
// parallel GPUs share: prefill, for all tokens of the prompts at once, then decode, one token of
// each request at a time. Either each instance does both, or instances that prefill hand their KV
// caches to as many that decode, layer by layer (Patel et al., Splitwise, ISCA 2024; Zhong et al.,
// DistServe, OSDI 2024). Before that the model may be loaded: the first instance has it, and
// sends it to all others, each GPU its share.
//
// Decoding reads all parameters, and all caches, for each token: memory, not operations, is what
// it takes time for (Pope et al., Efficiently Scaling Transformer Inference, MLSys 2023).
// Rank = tensor + tensors * instance: those that prefill first.
#pragma once

#include <string>

#include "jobs/steps/gpu.h"
#include "jobs/steps/parts_builder.h"
#include "jobs/steps/refusal.h"
#include "jobs/steps/transformer.h"

namespace verbena::jobs {

enum class Serving : u8 { kTogether, kDisaggregated };

struct InferenceConfig {
  Transformer model;
  GPU gpu;
  Serving serving = Serving::kTogether;
  u32 tensor = 8;
  u32 instances = 1;  // even, where prefill and decode are apart
  u32 batch = 8;      // requests, of each pair of instances or instance
  u64 prompt = 2048;  // tokens
  u32 output = 16;    // tokens, the first of which prefill makes
  bool loads_model = false;

  [[nodiscard]] u32 ranks() const { return tensor * instances; }
};

// Returns the reason why the step is impossible, or "".
[[nodiscard]] Refusal refusal_of(const InferenceConfig& config);
[[nodiscard]] inline std::string refusal(const InferenceConfig& config) {
  return refusal_of(config).what;
}
// Precondition: refusal(config) is "".
[[nodiscard]] ProgramParts inference_step(const InferenceConfig& config, u32 ranks_per_node,
                                          const Cutting& cutting);

}  // namespace verbena::jobs
