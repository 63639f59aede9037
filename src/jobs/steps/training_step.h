// TrainingStep: what each GPU does in one step of training a transformer, in forward and backward
// passes of micro-batches, with four kinds of parallelism:
//   tensor    GPUs share each layer: AllReduces of the activations, two forward and two backward
//             (Shoeybi et al., Megatron-LM, 2019)
//   pipeline  stages of consecutive layers; one forward, one backward (1F1B: Narayanan et al., SC
//             2021, 2.2.1); each GPU sends its part of the activations to the next stage
//   data      replicas: gradients are added in buckets, as backward passes of layers end, beside
//             the others (Li et al., PyTorch Distributed, VLDB 2020, 3.2.3)
//   expert    replicas share the experts: AllToAlls before and after them (Lepikhin et al., GShard,
//             2020); gradients of experts are added among the replicas that have the same ones
// Rank = tensor + tensors * (data + replicas * stage): those of a layer are in one node.
#pragma once

#include "jobs/steps/training_config.h"

namespace verbena::jobs {

// Precondition: refusal(config) is "".
[[nodiscard]] ProgramParts training_step(const TrainingConfig& config, u32 ranks_per_node,
                                         const Cutting& cutting);

}  // namespace verbena::jobs
