#include "jobs/serving/serving_section.h"

#include <fmt/format.h>

#include "jobs/cluster_section.h"

namespace verbena::jobs {
namespace {

constexpr u64 kMostInstances = 4096, kMostCacheTokens = 1u << 30;

std::string names_of_kv_models() {
  std::vector<std::string> names;
  for (const transfer::KVModel& model : transfer::kv_models()) names.emplace_back(model.name);
  return fabric::one_of(names);
}

void read_trace(fabric::Section& section, const fabric::FileReader& read_file,
                ServingConfig& serving) {
  const std::string name = section.text("trace", "");
  if (name.empty()) return section.complain("trace", "a file of requests is needed");
  const fabric::Parsed<std::string> text = read_file(name);
  if (!text) return section.complain("trace", text.error().message);
  auto trace = transfer::RequestTrace::parse(*text);
  if (!trace) return section.complain("trace", name + ": " + trace.error());
  serving.trace = std::move(*trace);
  const u64 requests = section.count("requests", serving.trace.requests.size(), 1,
                                     transfer::RequestTrace::kMaxRequests);
  if (requests < serving.trace.requests.size()) serving.trace.requests.resize(requests);
}

// GPUs in the cluster's order: first those of prefill instances.
void place_instances(fabric::Section& section, const Cluster& cluster, ServingConfig& serving) {
  const u64 needed = u64{serving.gpus} * (serving.prefill + serving.decode);
  if (needed > cluster.ranks())
    return section.complain("prefill", fmt::format("the instances need {} GPUs, and there are {}",
                                                   needed, cluster.ranks()));
  for (u32 instance = 0; instance < serving.prefill + serving.decode; ++instance)
    for (u32 gpu = 0; gpu < serving.simulated_gpus; ++gpu)
      serving.hosts.push_back(cluster.nics[instance * serving.gpus + gpu]);
}

}  // namespace

void read_serving(fabric::Section section, u32 rails, const fabric::FileReader& read_file,
                  Job& job) {
  ServingConfig& serving = job.serving.emplace();
  read_cluster(section, rails, job);
  const std::string model = section.text("model", "llama3-70b");
  if (const transfer::KVModel* const known = transfer::find_kv_model(model); known != nullptr)
    serving.model = *known;
  else
    section.complain("model", fmt::format("'{}' is none of {}", model, names_of_kv_models()));
  const auto count = [&](std::string_view key, u32 fallback, u64 most) {
    return static_cast<u32>(section.count(key, fallback, 1, most));
  };
  serving.prefill = count("prefill", serving.prefill, kMostInstances);
  serving.decode = count("decode", serving.decode, kMostInstances);
  serving.gpus = count("tensor", job.cluster.gpus_per_node, kMostGPUsOfNode);
  if (!serving.model.divides_by(serving.gpus))
    section.complain(
        "tensor", fmt::format("{} has {} KV heads, which {} GPUs cannot share", serving.model.name,
                              serving.model.kv_heads, serving.gpus));
  serving.simulated_gpus = count("simulated_gpus", 1, serving.gpus);
  serving.block_tokens = count("block_tokens", serving.block_tokens, 1 << 16);
  serving.cache_tokens =
      section.count("cache_tokens", serving.cache_tokens, serving.block_tokens, kMostCacheTokens);
  serving.prefill_flops = section.number("flops", serving.prefill_flops, 1e9, 1e18);
  serving.memory_rate = section.number("memory_rate", serving.memory_rate, 1e6, 1e15);
  serving.by_layer = section.on("by_layer", serving.by_layer);
  read_trace(section, read_file, serving);
  place_instances(section, job.cluster, serving);
  if (job.plan.topology.nodes > fabric::kMaxNodes)
    section.complain("", "there are too many nodes for packets");
  section.done();
}

}  // namespace verbena::jobs
