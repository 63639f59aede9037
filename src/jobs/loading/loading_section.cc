#include "jobs/loading/loading_section.h"

#include <fmt/format.h>

#include "jobs/cluster_section.h"
#include "transfer/kv_layout.h"

namespace verbena::jobs {
namespace {

constexpr u64 kMostSources = 4096, kMostChunks = 4096;

// Sources are the last hosts of the topology, which have no GPU then.
void place_loaders(fabric::Section& section, const Job& job, LoadingConfig& loading) {
  const u64 hosts = job.plan.hosts.size();
  const u64 sources = section.count("sources", 1, 1, kMostSources);
  const u64 gpus = job.cluster.ranks();
  if (gpus + sources > hosts)
    return section.complain("sources",
                            fmt::format("{} GPUs and {} sources need as many hosts, and there are "
                                        "{}: gpus leaves some out",
                                        gpus, sources, hosts));
  loading.gpus = job.cluster.nics;
  // As far from each other as may be.
  for (u64 i = 0; i < sources; ++i)
    loading.sources.push_back(job.plan.hosts[gpus + i * (hosts - gpus) / sources]);
}

}  // namespace

void read_loading(fabric::Section section, u32 rails, Job& job) {
  LoadingConfig& loading = job.loading.emplace();
  read_cluster(section, rails, job);
  loading.model = section.text("model", "llama3-405b");
  u64 bytes = 0;
  if (const transfer::KVModel* const known = transfer::find_kv_model(loading.model))
    bytes = static_cast<u64>(known->parameters) * known->element_bytes;
  loading.bytes = section.bytes("size", bytes, 1);
  if (loading.bytes == 0)
    section.complain("model",
                     fmt::format("'{}' is not known: size says how large it is", loading.model));
  loading.gpus_of_replica =
      static_cast<u32>(section.count("replica", job.cluster.ranks(), 1, job.cluster.ranks()));
  if (job.cluster.ranks() % loading.gpus_of_replica != 0)
    section.complain("replica", fmt::format("{} GPUs are no whole number of replicas of {}",
                                            job.cluster.ranks(), loading.gpus_of_replica));
  loading.chunk_bytes = static_cast<u32>(
      std::min<u64>(section.bytes("chunk", loading.chunk_bytes, 4096), u64{1} << 30));
  loading.simulated_chunks =
      static_cast<u32>(section.count("simulated_chunks", loading.simulated_chunks, 1, kMostChunks));
  if (loading.bytes != 0) loading.limit_simulation();
  loading.relays = section.on("relays", loading.relays);
  place_loaders(section, job, loading);
  if (job.plan.topology.nodes > fabric::kMaxNodes)
    section.complain("", "there are too many nodes for packets");
  section.done();
}

}  // namespace verbena::jobs
