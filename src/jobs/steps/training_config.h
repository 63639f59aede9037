// TrainingConfig: a step of training, as a user describes it. training_step.h has the kinds of
// parallelism.
#pragma once

#include <string>

#include "jobs/steps/gpu.h"
#include "jobs/steps/parts_builder.h"
#include "jobs/steps/refusal.h"
#include "jobs/steps/transformer.h"

namespace verbena::jobs {

struct Parallelism {
  u32 tensor = 1, pipeline = 1, data = 1;
  u32 expert = 1;  // divides data

  [[nodiscard]] u32 ranks() const { return tensor * pipeline * data; }
};

// The state that replicas share instead of keeping it each. Rajbhandari et al., ZeRO, SC 2020; Zhao
// et al., PyTorch FSDP, VLDB 2023.
enum class Sharding : u8 {
  kNone,
  kOptimizer,  // ZeRO stage 1: ReduceScatter of gradients, AllGather of parameters
  kFull,       // stage 3: AllGather of a layer's parameters before each pass through it
};

enum class Recomputation : u8 {
  kNone,
  kFull,  // the forward pass again, before the backward pass
};

struct TrainingConfig {
  Transformer model;
  GPU gpu;
  Parallelism parallel;
  u64 sequence = 8192;           // tokens
  u32 micro_batch = 1;           // sequences
  u32 micro_batches = 1;         // of a step, of each replica
  u64 bucket_bytes = 25u << 20;  // of gradients: PyTorch DDP's bucket_cap_mb
  u32 gradient_bytes = 2;
  Sharding sharding = Sharding::kNone;
  Recomputation recomputation = Recomputation::kNone;

  [[nodiscard]] u64 tokens() const {  // of a step, by all
    return sequence * micro_batch * micro_batches * parallel.data;
  }
  [[nodiscard]] double flops() const;  // of the model, of a step, by all; nothing computed twice
};

// Returns the reason why it is impossible; "" if it is possible.
[[nodiscard]] Refusal refusal_of(const TrainingConfig& config);
[[nodiscard]] inline std::string refusal(const TrainingConfig& config) {
  return refusal_of(config).what;
}
}  // namespace verbena::jobs
