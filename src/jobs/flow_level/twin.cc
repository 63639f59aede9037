#include "jobs/flow_level/twin.h"

#include <algorithm>

namespace verbena::jobs {
namespace {

constexpr u32 kNone = ~u32{0};
constexpr u64 kLeastBytes = 64 * 1024;  // of the operation

// Hosts of the first ranks, and all switches above them.
std::vector<bool> nodes_for(const fabric::Topology& topology,
                            const std::vector<fabric::NodeIndex>& nics) {
  std::vector<bool> kept(topology.nodes);
  for (const fabric::NodeIndex nic : nics) kept[nic] = true;
  const std::vector<u32> tiers = fabric::tiers(topology);
  for (u32 tier = 0; tier <= *std::ranges::max_element(tiers); ++tier)
    for (const fabric::TopologyLink& link : topology.links)
      for (const auto& [below, above] : {std::pair(link.a, link.b), std::pair(link.b, link.a)})
        if (kept[below] && tiers[below] == tier && tiers[above] == tier + 1) kept[above] = true;
  return kept;
}

// The job on those nodes alone, with `ranks` of its ranks.
std::optional<Job> on_first_ranks(const Job& job, u32 ranks) {
  Job twin = job;
  twin.cluster.nics.resize(ranks);
  const std::vector<bool> kept = nodes_for(job.plan.topology, twin.cluster.nics);
  if (static_cast<u32>(std::ranges::count(kept, true)) > fabric::kMaxNodes) return std::nullopt;
  twin.plan = {};
  std::vector<u32> place(job.plan.topology.nodes, kNone);
  for (u32 node = 0; node < job.plan.topology.nodes; ++node) {
    if (!kept[node]) continue;
    place[node] = job.plan.topology.is_switch[node] ? twin.plan.add_switch(job.plan.names[node])
                                                    : twin.plan.add_host(job.plan.names[node]);
  }
  for (const fabric::TopologyLink& link : job.plan.topology.links)
    if (kept[link.a] && kept[link.b])
      twin.plan.topology.join(place[link.a], place[link.b], link.config);
  for (fabric::NodeIndex& nic : twin.cluster.nics) nic = place[nic];
  twin.network.faults = {};  // which name nodes and links of the whole
  twin.storage.reset();
  twin.method = Method::kBoth;
  twin.keep = Keep::kNumbers;
  return twin;
}

u32 whole_nodes(const Cluster& cluster, u32 ranks) {
  const u32 nodes = std::max(ranks / cluster.gpus_per_node, 2u);
  return std::min(cluster.ranks(), nodes * cluster.gpus_per_node);
}

}  // namespace

std::optional<Job> twin_of(const Job& job, const collectives::Shape& shape) {
  const u32 ranks = whole_nodes(job.cluster, kTwinGPUs);
  std::optional<Job> twin = on_first_ranks(job, ranks);
  if (!twin) return std::nullopt;
  collectives::Shape small = shape;
  small.ranks = ranks;
  small.root = std::min(small.root, ranks - 1);
  const u64 bytes = static_cast<u64>(static_cast<double>(shape.bytes) * ranks / shape.ranks);
  const u64 unit = u64{ranks} * shape.element_bytes;
  small.bytes = std::min(shape.bytes, std::max(bytes, kLeastBytes)) / unit * unit;
  if (small.bytes == 0) small.bytes = unit;
  twin->shapes = {small};
  return twin;
}

std::optional<Job> twin_of_step(const Job& job) {
  if (job.imported) return std::nullopt;
  u32 ranks = job.cluster.ranks();
  if (job.training) {
    const Parallelism& parallel = job.training->parallel;
    ranks = parallel.tensor * parallel.pipeline * std::min(parallel.data, 2 * parallel.expert);
  } else {
    ranks = job.inference->tensor * std::min(job.inference->instances, 2u);
  }
  std::optional<Job> twin = on_first_ranks(job, ranks);
  if (!twin) return std::nullopt;
  if (twin->training) {
    TrainingConfig& training = *twin->training;
    training.parallel.data = ranks / (training.parallel.tensor * training.parallel.pipeline);
    training.model.layers = training.parallel.pipeline;
  } else {
    twin->inference->instances = ranks / twin->inference->tensor;
    twin->inference->model.layers = std::min(twin->inference->model.layers, 4u);
  }
  return twin;
}

}  // namespace verbena::jobs
