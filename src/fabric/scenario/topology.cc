#include <array>

#include <fmt/format.h>

#include "fabric/scenario/parts.h"
#include "fabric/topologies/dumbbell.h"
#include "fabric/topologies/fat_tree.h"
#include "fabric/topologies/imported.h"
#include "fabric/topologies/leaf_spine.h"
#include "fabric/topologies/rail_optimized.h"
#include "fabric/topologies/star.h"

namespace verbena::fabric {
namespace {

constexpr u32 kMostPorts = 4096;      // of a switch
constexpr u32 kMostNodes = 1u << 18;  // where they are not simulated; else kMaxNodes

u32 count(Section& section, std::string_view key, u32 fallback, u32 least, u32 most) {
  return static_cast<u32>(section.count(key, fallback, least, most));
}

std::optional<Plan> read_star(Section& section, const PlanLinks& links, const FileReader&) {
  return star(count(section, "hosts", 8, 2, kMostPorts), links.host);
}

std::optional<Plan> read_dumbbell(Section& section, const PlanLinks& links, const FileReader&) {
  const u32 left = count(section, "left", 4, 1, kMostPorts);
  const u32 right = count(section, "right", left, 1, kMostPorts);
  return dumbbell(left, right, links);
}

std::optional<Plan> read_fat_tree(Section& section, const PlanLinks& links, const FileReader&) {
  const u32 k = count(section, "k", 4, 2, 256);
  if (k % 2 != 0) {
    section.complain("k",
                     fmt::format("{} is odd; a fat tree's switches have 2, 4, 6, ... ports", k));
    return std::nullopt;
  }
  if (fat_tree_nodes(k) > kMaxNodes) {
    section.complain("k", fmt::format("{} makes {} nodes, and there may be {}", k,
                                      fat_tree_nodes(k), kMaxNodes));
    return std::nullopt;
  }
  return fat_tree(k, links);
}

// Spines and the rate of their links follow from the oversubscription, as far as they are not
// given.
std::optional<Plan> read_leaf_spine(Section& section, PlanLinks links, const FileReader&) {
  LeafSpine shape;
  shape.leaves = count(section, "leaves", 4, 1, kMostPorts);
  shape.hosts_per_leaf = count(section, "hosts_per_leaf", 8, 1, kMostPorts);
  const double below =
      static_cast<double>(links.host.rate.bps()) * static_cast<double>(shape.hosts_per_leaf);
  const bool has_spines = section.has("spines");
  const double ratio = section.number("oversubscription", 1, 0.01, 1000);
  const double needed = below / ratio / static_cast<double>(links.fabric.rate.bps());
  shape.spines = count(section, "spines",
                       std::clamp(static_cast<u32>(needed + 0.999), 1u, kMostPorts), 1, kMostPorts);
  if (has_spines && section.has("oversubscription"))
    links.fabric.rate =
        Rate::from_bps(static_cast<u64>(below / ratio / static_cast<double>(shape.spines)));
  if (links.fabric.rate < mbps(1) || links.fabric.rate > gbps(10'000)) {
    section.complain("oversubscription", "the links to the spines come out of 1 Mb/s .. 10 Tb/s");
    return std::nullopt;
  }
  if (u64{shape.leaves} * (shape.hosts_per_leaf + 1) + shape.spines > kMaxNodes) {
    section.complain("leaves", fmt::format("there may be {} nodes in all", kMaxNodes));
    return std::nullopt;
  }
  return leaf_spine(shape, links);
}

std::optional<Plan> read_rail_optimized(Section& section, const PlanLinks& links,
                                        const FileReader&) {
  RailOptimized shape;
  shape.nodes = count(section, "nodes", 4, 1, kMostNodes);
  shape.rails = count(section, "rails", 8, 1, 64);
  shape.groups = count(section, "groups", 1, 1, shape.nodes);
  shape.spines = count(section, "spines", 4, 0, kMostPorts);
  if (shape.nodes % shape.groups != 0) {
    section.complain("groups", fmt::format("{} nodes cannot be divided into {} equal groups",
                                           shape.nodes, shape.groups));
    return std::nullopt;
  }
  if (shape.nodes / shape.groups > kMostPorts) {
    section.complain("groups", fmt::format("{} nodes of a group are more than the {} ports of its "
                                           "leaf switches",
                                           shape.nodes / shape.groups, kMostPorts));
    return std::nullopt;
  }
  if (u64{shape.nodes + shape.groups} * shape.rails + shape.spines > kMostNodes) {
    section.complain("nodes", fmt::format("there may be {} nodes in all", kMostNodes));
    return std::nullopt;
  }
  return rail_optimized(shape, links);
}

std::optional<Plan> read_import(Section& section, const PlanLinks& links,
                                const FileReader& read_file) {
  const std::string file = section.text("file", "");
  if (file.empty()) {
    section.complain("file", "which file has the nodes and links? file: topology.txt");
    return std::nullopt;
  }
  const Parsed<std::string> text = read_file(file);
  if (!text) {
    section.complain("file", text.error().message);
    return std::nullopt;
  }
  Parsed<Plan> plan = imported_plan(file, *text, links.host);
  if (!plan) {
    section.complain("file", plan.error().message);
    return std::nullopt;
  }
  return *std::move(plan);
}

struct Kind {
  std::string_view name;
  std::optional<Plan> (*read)(Section&, PlanLinks, const FileReader&);
};
template <auto read>
std::optional<Plan> with(Section& section, PlanLinks links, const FileReader& read_file) {
  return read(section, links, read_file);
}
constexpr std::array kKinds = {
    Kind{"star", with<read_star>},
    Kind{"dumbbell", with<read_dumbbell>},
    Kind{"fat_tree", with<read_fat_tree>},
    Kind{"leaf_spine", with<read_leaf_spine>},
    Kind{"rail_optimized", with<read_rail_optimized>},
    Kind{"import", with<read_import>},
};

}  // namespace

std::optional<Plan> read_topology(Section section, const PlanLinks& links,
                                  const FileReader& read_file) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  const std::string word = section.text("kind", "");
  if (word.starts_with("dual")) {
    section.complain("kind", "hosts have one link each here, so there is no dual-ToR");
    return std::nullopt;
  }
  if (word.empty()) {
    section.complain("kind", fmt::format("of what kind? {}", one_of({names.begin(), names.end()})));
    section.done();
    return std::nullopt;
  }
  const std::size_t kind = section.choice("kind", names.size(), names);
  if (kind == names.size()) return std::nullopt;
  std::optional<Plan> plan = kKinds[kind].read(section, links, read_file);
  section.done();
  if (plan && plan->hosts.size() < 2) {
    section.complain("kind", "there are fewer than two hosts");
    return std::nullopt;
  }
  return plan;
}

}  // namespace verbena::fabric
