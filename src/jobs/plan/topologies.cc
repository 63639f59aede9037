#include "jobs/plan/topologies.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "jobs/job_file.h"

namespace verbena::jobs {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"star",           "leaf_spine", "fat_tree",
                                                    "rail_optimized", "rail_only",  "dual_tor"};
constexpr u32 kHostsOfLeaf = 16;

u32 ports_of_fat_tree(u32 hosts) {
  u32 k = 2;
  while (u64{k} * k * k / 4 < hosts) k += 2;
  return k;
}

u32 quotient_up(u32 a, u32 b) { return (a + b - 1) / b; }

}  // namespace

std::span<const std::string_view> topology_kinds() { return kKinds; }

std::string topology_of_kind(std::string_view kind, u32 gpus, u32 gpus_per_node) {
  const u32 nodes = quotient_up(gpus, gpus_per_node);
  if (kind == "star") return fmt::format("{{kind: star, hosts: {}}}", gpus);
  if (kind == "leaf_spine") {
    const u32 hosts = std::min(gpus, kHostsOfLeaf);
    return fmt::format("{{kind: leaf_spine, leaves: {}, hosts_per_leaf: {}}}",
                       quotient_up(gpus, hosts), hosts);
  }
  if (kind == "fat_tree") return fmt::format("{{kind: fat_tree, k: {}}}", ports_of_fat_tree(gpus));
  if (kind == "rail_optimized" || kind == "rail_only")
    return fmt::format("{{kind: rail_optimized, nodes: {}, rails: {}, spines: {}}}", nodes,
                       gpus_per_node, kind == "rail_only" ? 0 : nodes);
  if (kind == "dual_tor") {
    const u32 segments = nodes < 2 ? 1 : 2;
    return fmt::format("{{kind: dual_tor, segments: {}, hosts_per_segment: {}, rails: {}}}",
                       segments, quotient_up(nodes, segments), gpus_per_node);
  }
  return "";
}

fabric::Parsed<std::string> with_topology(const std::string& job, const std::string& other,
                                          const std::string& folder, JobSize size) {
  try {
    YAML::Node root = YAML::Load(without_preset(job));
    const YAML::Node taken = YAML::Load(other);
    if (!taken.IsMap() || !taken["topology"].IsDefined())
      return tl::unexpected(fabric::InputError{"it has no key `topology`"});
    root["topology"] = taken["topology"];
    if (root["topology"].IsMap() && root["topology"]["file"].IsDefined() && !folder.empty())
      root["topology"]["file"] = folder + "/" + root["topology"]["file"].Scalar();
    if (taken["links"].IsDefined()) root["links"] = taken["links"];
    const std::string section = section_of_job(job);
    if (root[section].IsScalar()) {  // `collective: all reduce`
      YAML::Node full;
      full["operation"] = root[section].Scalar();
      root[section] = full;
    }
    root[section]["gpus"] = size.gpus;
    root[section]["gpus_per_node"] = size.gpus_per_node;
    return YAML::Dump(root) + "\n";
  } catch (const YAML::Exception& error) {
    return tl::unexpected(fabric::InputError{error.msg});
  }
}

}  // namespace verbena::jobs
