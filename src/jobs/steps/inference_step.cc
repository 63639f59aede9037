#include "jobs/steps/inference_step.h"

#include <fmt/format.h>

#include <utility>

namespace verbena::jobs {
namespace {

using collectives::Operation;

struct Communicators {
  u32 tensor = PartsBuilder::kNone, cache = PartsBuilder::kNone, model = PartsBuilder::kNone;
};

Communicators add_communicators(const InferenceConfig& config, PartsBuilder& builder) {
  const u32 tensor = config.tensor;
  std::vector<std::vector<u32>> instances(config.instances), shares(tensor), pairs;
  for (u32 rank = 0; rank < config.ranks(); ++rank) {
    instances[rank / tensor].push_back(rank);
    shares[rank % tensor].push_back(rank);
    if (config.serving == Serving::kDisaggregated && rank < config.ranks() / 2)
      pairs.push_back({rank, rank + config.ranks() / 2});
  }
  return {.tensor = builder.add_communicator("tensor", std::move(instances)),
          .cache = builder.add_communicator("KV cache", std::move(pairs)),
          .model = builder.add_communicator("model", std::move(shares))};
}

// The tasks of the GPUs of one instance.
class InstanceTasks {
 public:
  InstanceTasks(const InferenceConfig& config, const Communicators& communicators,
                PartsBuilder& builder)
      : config_(config), communicators_(communicators), builder_(builder) {
    builder.begin_role();
  }

  void load() {
    if (!config_.loads_model || communicators_.model == PartsBuilder::kNone) return;
    const u64 bytes = config_.model.parameters() * kParameterBytes / config_.tensor;
    after_.push_back(builder_.operate(
        "model", Purpose::kModelLoad,
        builder_.operation(communicators_.model, Operation::kBroadcast, bytes), {}));
  }

  void prefill() {
    const double tokens = static_cast<double>(config_.prompt) * config_.batch;
    for (u32 layer = 0; layer < config_.model.layers; ++layer) {
      const std::string name = fmt::format("prefill L{}", layer);
      half(name + " attention", Purpose::kPrefill,
           tokens * config_.model.attention_flops(config_.prompt),
           config_.model.attention_parameters() * kParameterBytes, tokens);
      move_cache(layer, {computed_});
      half(name + " MLP", Purpose::kPrefill, tokens * config_.model.mlp_flops(), mlp_bytes(),
           tokens);
    }
    output(Purpose::kPrefill, "prefill output");
  }

  void receive_caches() {
    for (u32 layer = 0; layer < config_.model.layers; ++layer) move_cache(layer, {});
  }

  // Tokens after the first.
  void decode() {
    for (u32 token = 1; token < config_.output; ++token)
      for (u32 layer = 0; layer < config_.model.layers; ++layer) {
        const std::string name = fmt::format("decode {} L{}", token, layer);
        if (token == 1 && !caches_.empty()) after_.push_back(caches_[layer]);
        const u64 context = config_.prompt + token;
        half(name + " attention", Purpose::kDecode,
             config_.batch * config_.model.attention_flops(context),
             config_.model.attention_parameters() * kParameterBytes +
                 config_.batch * context * config_.model.cache_bytes(),
             config_.batch);
        half(name + " MLP", Purpose::kDecode, config_.batch * config_.model.mlp_flops(),
             mlp_bytes(), config_.batch);
        if (layer + 1 == config_.model.layers)
          output(Purpose::kDecode, fmt::format("decode {} output", token));
      }
  }

 private:
  // Returns the bytes of experts that an instance reads: all experts if a batch needs them all.
  [[nodiscard]] u64 mlp_bytes() const {
    const Transformer& model = config_.model;
    const u64 asked = u64{config_.batch} * model.experts_per_token;
    const u64 mlps = model.experts == 0 ? 1 : std::min<u64>(model.experts, asked);
    return mlps * model.mlp_parameters() * kParameterBytes;
  }

  void output(Purpose purpose, std::string name) {
    computed_ = builder_.compute(std::move(name), purpose,
                                 time_of(config_.batch * config_.model.output_flops(),
                                         config_.model.embedding_parameters() * kParameterBytes),
                                 std::exchange(after_, {}));
  }

  void half(const std::string& name, Purpose purpose, double flops, u64 bytes, double tokens) {
    computed_ = builder_.compute(name, purpose, time_of(flops, bytes), std::exchange(after_, {}));
    if (communicators_.tensor == PartsBuilder::kNone) return;
    const u64 sum = static_cast<u64>(tokens) * config_.model.hidden * kActivationBytes;
    after_ = {builder_.operate(
        name, Purpose::kTensor,
        builder_.operation(communicators_.tensor, Operation::kAllReduce, sum), {computed_})};
  }

  // Moves the cache of one layer; every GPU moves its share of the heads.
  void move_cache(u32 layer, std::vector<u32> after) {
    if (communicators_.cache == PartsBuilder::kNone) return;
    const u64 bytes = config_.batch * config_.prompt * config_.model.cache_bytes() / config_.tensor;
    caches_.push_back(builder_.operate(
        fmt::format("KV cache L{}", layer), Purpose::kCacheMove,
        builder_.operation(communicators_.cache, Operation::kBroadcast, bytes), std::move(after)));
  }

  [[nodiscard]] Duration time_of(double flops, u64 bytes) const {
    return config_.gpu.time_of(flops / config_.tensor, static_cast<double>(bytes) / config_.tensor);
  }

  const InferenceConfig& config_;
  const Communicators& communicators_;
  PartsBuilder& builder_;
  std::vector<u32> after_;   // the next computing comes after these
  std::vector<u32> caches_;  // tasks that move them, by layer
  u32 computed_ = 0;         // the last task that computes
};

}  // namespace

Refusal refusal_of(const InferenceConfig& config) {
  if (config.model.heads % config.tensor != 0)
    return {"tensor",
            fmt::format("{} heads are no whole number for each of {} tensor parallel GPUs",
                        config.model.heads, config.tensor)};
  if (config.serving == Serving::kDisaggregated && config.instances % 2 != 0)
    return {"serving",
            fmt::format("{} instances are no pairs of one that prefills and one that decodes",
                        config.instances)};
  return {};
}

ProgramParts inference_step(const InferenceConfig& config, u32 ranks_per_node,
                            const Cutting& cutting) {
  PartsBuilder builder(config.ranks(), ranks_per_node, cutting);
  const Communicators communicators = add_communicators(config, builder);
  InstanceTasks first(config, communicators, builder);
  first.load();
  first.prefill();
  std::vector<u32> role_of(config.ranks(), 0);
  if (config.serving == Serving::kTogether) {
    first.decode();
    return builder.take(std::move(role_of));
  }
  InstanceTasks second(config, communicators, builder);
  second.load();
  second.receive_caches();
  second.decode();
  std::fill(role_of.begin() + config.ranks() / 2, role_of.end(), 1);
  return builder.take(std::move(role_of));
}

}  // namespace verbena::jobs
