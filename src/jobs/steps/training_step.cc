#include "jobs/steps/training_step.h"

#include <fmt/format.h>

#include "jobs/steps/stage_tasks.h"

namespace verbena::jobs {
namespace {

// The groups of ranks that differ in `inner` only: rank = low + lows * (inner + inners * high).
std::vector<std::vector<u32>> groups_of(u32 lows, u32 inners, u32 highs) {
  std::vector<std::vector<u32>> groups;
  for (u32 high = 0; high < highs; ++high)
    for (u32 low = 0; low < lows; ++low) {
      groups.emplace_back();
      for (u32 inner = 0; inner < inners; ++inner)
        groups.back().push_back(low + lows * (inner + inners * high));
    }
  return groups;
}

// Returns the pairs of ranks of each stage with `parity` and the next stage.
std::vector<std::vector<u32>> pairs_of(const Parallelism& parallel, u32 parity) {
  const u32 in_stage = parallel.tensor * parallel.data;
  std::vector<std::vector<u32>> pairs;
  for (u32 stage = parity; stage + 1 < parallel.pipeline; stage += 2)
    for (u32 i = 0; i < in_stage; ++i)
      pairs.push_back({stage * in_stage + i, (stage + 1) * in_stage + i});
  return pairs;
}

StageCommunicators add_communicators(const Parallelism& parallel, bool has_experts,
                                     PartsBuilder& builder) {
  const u32 tensor = parallel.tensor, stages = parallel.pipeline, replicas = parallel.data;
  StageCommunicators made;
  made.tensor = builder.add_communicator("tensor", groups_of(1, tensor, replicas * stages));
  made.data = builder.add_communicator("data", groups_of(tensor, replicas, stages));
  for (u32 parity = 0; parity < 2; ++parity) {
    const std::string name = parity == 0 ? " of even stages" : " of odd stages";
    made.forward[parity] = builder.add_communicator("forward" + name, pairs_of(parallel, parity));
    made.backward[parity] = builder.add_communicator("backward" + name, pairs_of(parallel, parity));
  }
  if (!has_experts) return made;
  const u32 share = replicas / parallel.expert;
  made.expert =
      builder.add_communicator("expert", groups_of(tensor, parallel.expert, share * stages));
  made.expert_data =
      builder.add_communicator("expert data", groups_of(tensor * parallel.expert, share, stages));
  return made;
}

// "one forward, one backward" once the stages behind have their first micro-batches.
void add_passes(StageTasks& tasks, u32 stage, const TrainingConfig& config) {
  const u32 all = config.micro_batches;
  const u32 ahead = std::min(config.parallel.pipeline - stage - 1, all);
  for (u32 i = 0; i < ahead; ++i) tasks.forward(i);
  for (u32 i = ahead; i < all; ++i) {
    tasks.forward(i);
    tasks.backward(i - ahead);
  }
  for (u32 i = all - ahead; i < all; ++i) tasks.backward(i);
  tasks.finish();
}

}  // namespace

double TrainingConfig::flops() const {
  const double layer = model.attention_flops(sequence) + model.mlp_flops();
  return 3 * static_cast<double>(tokens()) * (layer * model.layers + model.output_flops());
}

Refusal refusal_of(const TrainingConfig& config) {
  const Parallelism& parallel = config.parallel;
  if (config.model.layers % parallel.pipeline != 0)
    return {"pipeline", fmt::format("{} layers are no whole number for each of {} pipeline stages",
                                    config.model.layers, parallel.pipeline)};
  if (config.model.heads % parallel.tensor != 0)
    return {"tensor",
            fmt::format("{} heads are no whole number for each of {} tensor parallel GPUs",
                        config.model.heads, parallel.tensor)};
  if (parallel.expert > 1 && config.model.experts % parallel.expert != 0)
    return {"expert",
            fmt::format("{} experts are no whole number for each of {} expert parallel GPUs",
                        config.model.experts, parallel.expert)};
  if (parallel.data % parallel.expert != 0)
    return {"expert",
            fmt::format("{} replicas are no whole number of groups of {} that share experts",
                        parallel.data, parallel.expert)};
  return {};
}

ProgramParts training_step(const TrainingConfig& config, u32 ranks_per_node,
                           const Cutting& cutting) {
  const Parallelism& parallel = config.parallel;
  PartsBuilder builder(parallel.ranks(), ranks_per_node, cutting);
  const StageCommunicators communicators =
      add_communicators(parallel, parallel.expert > 1, builder);
  std::vector<u32> role_of;
  for (u32 stage = 0; stage < parallel.pipeline; ++stage) {
    StageTasks tasks(config, stage, communicators, builder);
    add_passes(tasks, stage, config);
    role_of.insert(role_of.end(), parallel.tensor * parallel.data, stage);
  }
  return builder.take(std::move(role_of));
}

}  // namespace verbena::jobs
