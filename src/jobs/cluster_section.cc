#include "jobs/cluster_section.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/prng.h"

namespace verbena::jobs {
namespace {

void shuffle(std::vector<fabric::NodeIndex>& nodes, u64 seed) {
  PRNG prng(seed);
  for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[prng.below(i)]);
}

}  // namespace

void read_cluster(fabric::Section& section, u32 rails, Job& job) {
  const u64 hosts = job.plan.hosts.size();
  const u64 gpus = section.count("gpus", hosts, 2, hosts);
  job.cluster.gpus_per_node =
      static_cast<u32>(section.count("gpus_per_node", rails, 1, kMostGPUsOfNode));
  if (gpus % job.cluster.gpus_per_node != 0)
    section.complain("gpus_per_node", fmt::format("{} GPUs are no whole number of nodes of {}",
                                                  gpus, job.cluster.gpus_per_node));
  fabric::Section nvlink = section.section("nvlink", "rate");
  job.cluster.nvlink.rate = nvlink.rate("rate", job.cluster.nvlink.rate);
  job.cluster.nvlink.latency = nvlink.duration("latency", job.cluster.nvlink.latency);
  nvlink.done();
  job.cluster.nics = job.plan.hosts;
  constexpr std::array<std::string_view, 2> kPlacements = {"in_order", "random"};
  if (section.choice("placement", 0, kPlacements) == 1) shuffle(job.cluster.nics, job.network.seed);
  job.cluster.nics.resize(gpus);
}

void read_run(fabric::Section& section, RunConfig& run) {
  run.window = static_cast<u32>(section.count("window", run.window, 1, 64));
  run.step_overhead = section.duration("step_overhead", {});
  run.priority = static_cast<u8>(section.count("priority", run.priority, 0, 7));
}

void read_method(fabric::Section& section, Job& job) {
  constexpr std::array<std::string_view, 3> kMethods = {"packets", "flows", "both"};
  job.method = static_cast<Method>(section.choice("method", 0, kMethods));
  if (job.method != Method::kFlows && job.plan.topology.nodes > fabric::kMaxNodes)
    section.complain("method", fmt::format("{} nodes are too many for packets: method: flows",
                                           job.plan.topology.nodes));
}

}  // namespace verbena::jobs
