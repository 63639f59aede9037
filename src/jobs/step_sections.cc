#include "jobs/step_sections.h"

#include <array>

#include <fmt/format.h>

#include "collectives/make_schedule.h"
#include "jobs/cluster_section.h"

namespace verbena::jobs {
namespace {

using fabric::Section;

constexpr u64 kMostLayers = 1024, kMostWidth = 1u << 20, kMostTokens = 1u << 24;
constexpr u64 kMostSequences = 1u << 20;

template <typename Known>
std::string names_of(std::span<const Known> known) {
  std::vector<std::string> names;
  for (const Known& one : known) names.emplace_back(one.name);
  return fabric::one_of(names);
}

u32 count(Section& section, std::string_view key, u32 fallback, u64 least, u64 most) {
  return static_cast<u32>(section.count(key, fallback, least, most));
}

// A name, or {name, and what is otherwise}.
Transformer read_model(Section section) {
  Transformer model = transformers().front();
  const std::string name = section.text("name", std::string(model.name));
  if (const Transformer* const known = transformer_named(name); known != nullptr)
    model = *known;
  else
    section.complain("name", fmt::format("'{}' is none of {}", name, names_of(transformers())));
  model.layers = count(section, "layers", model.layers, 1, kMostLayers);
  model.hidden = count(section, "hidden", model.hidden, 1, kMostWidth);
  model.feed_forward = count(section, "feed_forward", model.feed_forward, 1, kMostWidth);
  model.heads = count(section, "heads", model.heads, 1, kMostWidth);
  model.kv_heads = count(section, "kv_heads", model.kv_heads, 1, model.heads);
  model.vocabulary = count(section, "vocabulary", model.vocabulary, 1, kMostTokens);
  model.gated = section.on("gated", model.gated != 0) ? 1 : 0;
  model.experts = count(section, "experts", model.experts, 0, kMostWidth);
  model.experts_per_token = count(section, "experts_per_token", model.experts_per_token, 1,
                                  std::max(1u, model.experts == 0 ? 2 : model.experts));
  section.done();
  return model;
}

// Reads the parallelism, with as many replicas as the remaining GPUs allow.
void read_parallelism(Section& section, u32 ranks, Parallelism& parallel) {
  parallel.tensor = count(section, "tensor", 1, 1, ranks);
  parallel.pipeline = count(section, "pipeline", 1, 1, ranks);
  const u32 replica = parallel.tensor * parallel.pipeline;
  if (ranks % replica != 0) {
    section.complain(ranks % parallel.tensor != 0 ? "tensor" : "pipeline",
                     fmt::format("{} GPUs are no whole number of replicas of {} by {}", ranks,
                                 parallel.tensor, parallel.pipeline));
    return;
  }
  parallel.data = ranks / replica;
  parallel.expert = count(section, "expert", 1, 1, parallel.data);
}

void read_batch(Section& section, TrainingConfig& config) {
  config.micro_batch = count(section, "micro_batch", 1, 1, kMostSequences);
  const u64 at_once = u64{config.micro_batch} * config.parallel.data;
  const u64 fallback = at_once * config.parallel.pipeline;
  const u64 all = section.count("batch", fallback, 1, kMostSequences);
  if (all % at_once != 0)
    section.complain("batch", fmt::format("{} sequences are no whole number of micro-batches of "
                                          "{} for each of {} replicas",
                                          all, config.micro_batch, config.parallel.data));
  config.micro_batches = static_cast<u32>(std::max<u64>(1, all / at_once));
}

}  // namespace

GPU read_gpu(Section section) {
  GPU gpu;
  const std::string name = section.text("name", std::string(gpu.name));
  if (const GPU* const known = gpu_named(name); known != nullptr)
    gpu = *known;
  else
    section.complain("name", fmt::format("'{}' is none of {}", name, names_of(gpus())));
  gpu.flops = section.number("flops", gpu.flops, 1e9, 1e18);
  gpu.memory_bytes =
      static_cast<double>(
          section.rate("memory", Rate::from_bps(static_cast<u64>(gpu.memory_bytes * 8))).bps()) /
      8;
  gpu.efficiency = section.number("efficiency", gpu.efficiency, 0.01, 1);
  section.done();
  return gpu;
}

Cutting read_cutting(Section& section) {
  Cutting cutting;
  cutting.channels = count(section, "channels", cutting.channels, 1, collectives::kMaxChannels);
  cutting.chunk_bytes = section.bytes("chunk", cutting.chunk_bytes, 4096);
  if (cutting.chunk_bytes > fabric::ConnectionConfig::kMaxMessageBytes)
    section.complain("chunk", "a message has 1 GiB at most");
  return cutting;
}

void read_training(Section section, u32 rails, Job& job) {
  read_cluster(section, rails, job);
  TrainingConfig& config = job.training.emplace();
  config.model = read_model(section.section("model", "name"));
  config.gpu = read_gpu(section.section("gpu", "name"));
  read_parallelism(section, job.cluster.ranks(), config.parallel);
  config.sequence = section.count("sequence", config.sequence, 1, kMostTokens);
  read_batch(section, config);
  config.bucket_bytes = section.bytes("bucket", config.bucket_bytes, 1);
  config.gradient_bytes = count(section, "gradient_bytes", config.gradient_bytes, 1, 4);
  constexpr std::array<std::string_view, 3> kShardings = {"none", "optimizer", "full"};
  config.sharding = static_cast<Sharding>(section.choice("sharding", 0, kShardings));
  constexpr std::array<std::string_view, 2> kRecomputations = {"none", "full"};
  config.recomputation =
      static_cast<Recomputation>(section.choice("recomputation", 0, kRecomputations));
  job.cutting = read_cutting(section);
  read_run(section, job.run);
  read_method(section, job);
  if (const Refusal wrong = refusal_of(config); !wrong.what.empty())
    section.complain(wrong.key, wrong.what);
  section.done();
}

void read_inference(Section section, u32 rails, Job& job) {
  read_cluster(section, rails, job);
  InferenceConfig& config = job.inference.emplace();
  config.model = read_model(section.section("model", "name"));
  config.gpu = read_gpu(section.section("gpu", "name"));
  const u32 ranks = job.cluster.ranks();
  config.tensor = count(section, "tensor", job.cluster.gpus_per_node, 1, ranks);
  if (ranks % config.tensor != 0)
    section.complain("tensor", fmt::format("{} GPUs are no whole number of instances of {}", ranks,
                                           config.tensor));
  config.instances = ranks / config.tensor;
  constexpr std::array<std::string_view, 2> kServings = {"together", "disaggregated"};
  config.serving = static_cast<Serving>(section.choice("serving", 0, kServings));
  config.batch = count(section, "batch", config.batch, 1, kMostSequences);
  config.prompt = section.count("prompt", config.prompt, 1, kMostTokens);
  config.output = count(section, "output", config.output, 1, 4096);
  config.loads_model = section.on("load_model", false);
  job.cutting = read_cutting(section);
  read_run(section, job.run);
  read_method(section, job);
  if (const Refusal wrong = refusal_of(config); !wrong.what.empty())
    section.complain(wrong.key, wrong.what);
  section.done();
}

}  // namespace verbena::jobs
