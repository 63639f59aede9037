#include "jobs/steps/stage_tasks.h"

#include <fmt/format.h>

#include <utility>

namespace verbena::jobs {
namespace {

using collectives::Operation;

// The bytes that Adam with mixed precision reads and writes for a parameter, besides its gradient:
// the parameter in 32 bits and two moments, each read and written, and the new parameter in 16
// bits.
constexpr u32 kOptimizerBytes = 3 * 4 * 2 + 2;

}  // namespace

StageTasks::StageTasks(const TrainingConfig& config, u32 stage,
                       const StageCommunicators& communicators, PartsBuilder& builder)
    : config_(config), stage_(stage), communicators_(communicators), builder_(builder) {
  builder.begin_role();
}

// --- what things take

Duration StageTasks::time_of(double flops_of_token, Pass pass) const {
  double times = 1;
  if (pass == Pass::kBackward) times = config_.recomputation == Recomputation::kFull ? 3 : 2;
  const double all = times * flops_of_token * static_cast<double>(tokens());
  return config_.gpu.time_of(all / config_.parallel.tensor, 0);
}

u64 StageTasks::layer_parameters() const {
  const Transformer& model = config_.model;
  const u64 mlps = shares_experts() ? 0 : std::max(1u, model.experts);
  return (model.attention_parameters() + mlps * model.mlp_parameters()) / config_.parallel.tensor;
}

u64 StageTasks::expert_parameters() const {
  if (!shares_experts()) return 0;
  const u64 experts = config_.model.experts / config_.parallel.expert;
  return experts * config_.model.mlp_parameters() / config_.parallel.tensor;
}

// --- passes

void StageTasks::forward(u32 micro_batch) {
  const std::string name = fmt::format("F{}", micro_batch);
  layer_ends_.clear();
  if (!is_first()) receive(name + " receive", communicators_.forward[(stage_ - 1) % 2], 0);
  const u32 layers = config_.model.layers / config_.parallel.pipeline;
  for (u32 i = 0; i < layers; ++i)
    layer(fmt::format("{} L{}", name, stage_ * layers + i), Pass::kForward);
  if (is_last())
    compute(name + " output", Pass::kForward,
            time_of(config_.model.output_flops(), Pass::kForward));
  else
    send(name + " send", communicators_.forward[stage_ % 2], 0);
}

void StageTasks::backward(u32 micro_batch) {
  const std::string name = fmt::format("B{}", micro_batch);
  const bool is_whole = config_.sharding == Sharding::kFull;
  adds_gradients_ = is_whole || micro_batch + 1 == config_.micro_batches;
  layer_ends_.clear();
  if (is_last()) {
    compute(name + " output", Pass::kBackward,
            time_of(config_.model.output_flops(), Pass::kBackward));
    add_gradients(config_.model.embedding_parameters() / config_.parallel.tensor, 0);
  } else {
    receive(name + " receive", communicators_.backward[stage_ % 2], 1);
  }
  const u32 layers = config_.model.layers / config_.parallel.pipeline;
  for (u32 i = layers; i-- > 0;) {
    layer(fmt::format("{} L{}", name, stage_ * layers + i), Pass::kBackward);
    add_gradients(layer_parameters(), expert_parameters());
  }
  if (is_first())
    add_gradients(config_.model.embedding_parameters() / config_.parallel.tensor, 0);
  else
    send(name + " send", communicators_.backward[(stage_ - 1) % 2], 1);
}

void StageTasks::layer(const std::string& name, Pass pass) {
  if (config_.sharding == Sharding::kFull) gather_parameters(name);
  if (pass == Pass::kForward) {
    attention(name, pass);
    mlp(name, pass);
  } else {
    mlp(name, pass);
    attention(name, pass);
  }
  layer_ends_.push_back(*computed_);
}

void StageTasks::attention(const std::string& name, Pass pass) {
  compute(name + " attention", pass,
          time_of(config_.model.attention_flops(config_.sequence), pass));
  exchange(name + " attention", Purpose::kTensor, communicators_.tensor, Operation::kAllReduce,
           activation_bytes());
}

void StageTasks::mlp(const std::string& name, Pass pass) {
  const u64 bytes = activation_bytes() * config_.model.experts_per_token / config_.parallel.tensor;
  exchange(name + " to experts", Purpose::kExpert, communicators_.expert, Operation::kAllToAll,
           bytes);
  compute(name + " MLP", pass, time_of(config_.model.mlp_flops(), pass));
  exchange(name + " from experts", Purpose::kExpert, communicators_.expert, Operation::kAllToAll,
           bytes);
  exchange(name + " MLP", Purpose::kTensor, communicators_.tensor, Operation::kAllReduce,
           activation_bytes());
}

// --- single tasks

void StageTasks::compute(const std::string& name, Pass pass, Duration lasts) {
  const Purpose purpose = pass == Pass::kForward ? Purpose::kForward : Purpose::kBackward;
  computed_ = builder_.compute(name, purpose, lasts, std::exchange(after_, {}));
}

// Adds an operation on the last computed data. The next computing waits for the operation.
void StageTasks::exchange(const std::string& name, Purpose purpose, u32 communicator,
                          Operation operation, u64 bytes) {
  if (communicator == PartsBuilder::kNone) return;
  std::vector<u32> after = std::exchange(after_, {});
  if (computed_) after.push_back(*computed_);
  after_ = {builder_.operate(name, purpose, builder_.operation(communicator, operation, bytes),
                             std::move(after))};
}

u64 StageTasks::activation_bytes() const {
  return tokens() * config_.model.hidden * kActivationBytes;
}

// Each tensor parallel GPU sends its share. Narayanan et al., 4.1.
u32 StageTasks::move_between_stages(u32 communicator, u32 root) const {
  return builder_.operation(communicator, Operation::kBroadcast,
                            activation_bytes() / config_.parallel.tensor, root);
}

void StageTasks::receive(const std::string& name, u32 communicator, u32 root) {
  after_.push_back(
      builder_.operate(name, Purpose::kPipeline, move_between_stages(communicator, root), {}));
}

void StageTasks::send(const std::string& name, u32 communicator, u32 root) {
  std::vector<u32> after = std::exchange(after_, {});
  if (computed_) after.push_back(*computed_);
  builder_.operate(name, Purpose::kPipeline, move_between_stages(communicator, root),
                   std::move(after));
}

// While the layer before is being computed, not sooner: that bounds the memory for them.
void StageTasks::gather_parameters(const std::string& name) {
  if (communicators_.data == PartsBuilder::kNone) return;
  std::vector<u32> after;
  if (layer_ends_.size() > 1) after.push_back(layer_ends_[layer_ends_.size() - 2]);
  after_.push_back(builder_.operate(name + " parameters", Purpose::kData,
                                    builder_.operation(communicators_.data, Operation::kAllGather,
                                                       layer_parameters() * kParameterBytes),
                                    std::move(after)));
}

// --- gradients

void StageTasks::add_gradients(u64 parameters, u64 of_experts) {
  if (!adds_gradients_) return;
  own_parameters_ += parameters + of_experts;
  gradients_ += parameters * config_.gradient_bytes;
  expert_gradients_ += of_experts * config_.gradient_bytes;
  if (gradients_ >= config_.bucket_bytes) reduce(gradients_, communicators_.data);
  if (expert_gradients_ >= config_.bucket_bytes)
    reduce(expert_gradients_, communicators_.expert_data);
}

void StageTasks::reduce(u64& bytes, u32 communicator) {
  const u64 all = std::exchange(bytes, 0);
  if (communicator == PartsBuilder::kNone || all == 0) return;
  const bool shards = config_.sharding != Sharding::kNone;
  const u32 operation = builder_.operation(
      communicator, shards ? Operation::kReduceScatter : Operation::kAllReduce, all);
  reductions_.push_back({builder_.operate(fmt::format("gradients {}", reductions_.size()),
                                          Purpose::kData, operation, {*computed_}),
                         communicator, all});
}

void StageTasks::finish() {
  reduce(gradients_, communicators_.data);
  reduce(expert_gradients_, communicators_.expert_data);
  std::vector<u32> after;
  for (const Reduction& reduction : reductions_) after.push_back(reduction.task);
  const bool shards = config_.sharding != Sharding::kNone;
  const u64 kept = own_parameters_ / (shards ? config_.parallel.data : 1);
  const double bytes = static_cast<double>(kept) * (kOptimizerBytes + config_.gradient_bytes);
  const u32 updated = builder_.compute("optimizer", Purpose::kOptimizer,
                                       config_.gpu.time_of(0, bytes), std::move(after));
  if (config_.sharding != Sharding::kOptimizer) return;
  for (const Reduction& reduction : reductions_)
    builder_.operate("parameters", Purpose::kData,
                     builder_.operation(reduction.communicator, Operation::kAllGather,
                                        reduction.bytes / config_.gradient_bytes * kParameterBytes),
                     {updated});
}

}  // namespace verbena::jobs
