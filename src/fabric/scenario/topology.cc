#include <array>

#include <fmt/format.h>

#include "fabric/scenario/parts.h"
#include "fabric/scenario/units.h"
#include "fabric/topologies/dual_tor.h"
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

Plan with_note(Plan plan, const std::string& note) {
  if (!note.empty()) plan.notes.push_back(note);
  return plan;
}

// Broadcom Tomahawk 6 (BCM78910, 102.4 Tb/s, 2025): 1,024 ports of 100 Gb/s.
constexpr u32 kMostPortsOfASwitch = 1024;

// A switch that nobody makes is simulated all the same.
void note_largest_switch(Plan& plan) {
  std::vector<u32> ports(plan.topology.nodes);
  for (const TopologyLink& link : plan.topology.links)
    for (const NodeIndex node : {link.a, link.b})
      if (plan.topology.is_switch[node]) ++ports[node];
  const auto largest = std::ranges::max_element(ports);
  if (largest == ports.end() || *largest <= kMostPortsOfASwitch) return;
  plan.notes.push_back(fmt::format(
      "{} has {} ports; no switch has more than {}, and this one is simulated as if it were one",
      plan.names[static_cast<std::size_t>(largest - ports.begin())], *largest,
      kMostPortsOfASwitch));
}

struct Uplinks {
  u32 spines = 0;  // that each leaf is linked to
  Rate rate;
  std::string note{};  // what was rounded
};
// Spines and the rate of their links follow from the oversubscription, as far as they are not
// given. `below`: the rate of all links of a leaf to hosts, in bit/s.
std::optional<Uplinks> read_uplinks(Section& section, std::string_view key, double below,
                                    Rate rate) {
  const bool has_spines = section.has(key);
  const double ratio = section.number("oversubscription", 1, 0.01, 1000);
  const double needed = below / ratio / static_cast<double>(rate.bps());
  const auto enough = static_cast<u32>(std::clamp(needed + 0.999, 1.0, double{kMostPorts}));
  Uplinks uplinks{.spines = count(section, key, enough, 1, kMostPorts), .rate = rate};
  const double built = below / uplinks.spines / static_cast<double>(rate.bps());
  if (!has_spines && section.has("oversubscription") && std::abs(built / ratio - 1) > 0.005)
    uplinks.note =
        fmt::format("oversubscription {:g} asked for, {:.2f} built: {} {} of {}", ratio, built,
                    uplinks.spines, key, rate_text(static_cast<double>(rate.bps())));
  if (has_spines && section.has("oversubscription"))
    uplinks.rate =
        Rate::from_bps(static_cast<u64>(below / ratio / static_cast<double>(uplinks.spines)));
  if (uplinks.rate >= mbps(1) && uplinks.rate <= gbps(10'000)) return uplinks;
  section.complain("oversubscription", "the links to the spines come out of 1 Mb/s .. 10 Tb/s");
  return std::nullopt;
}

double bps_of(const LinkConfig& link, u32 count) {
  return static_cast<double>(link.rate.bps()) * static_cast<double>(count);
}

std::optional<Plan> read_leaf_spine(Section& section, PlanLinks links, const FileReader&) {
  LeafSpine shape;
  shape.leaves = count(section, "leaves", 4, 1, kMostPorts);
  shape.hosts_per_leaf = count(section, "hosts_per_leaf", 8, 1, kMostPorts);
  const std::optional<Uplinks> uplinks =
      read_uplinks(section, "spines", bps_of(links.host, shape.hosts_per_leaf), links.fabric.rate);
  if (!uplinks) return std::nullopt;
  shape.spines = uplinks->spines;
  links.fabric.rate = uplinks->rate;
  if (u64{shape.leaves} * (shape.hosts_per_leaf + 1) + shape.spines > kMaxNodes) {
    section.complain("leaves", fmt::format("there may be {} nodes in all", kMaxNodes));
    return std::nullopt;
  }
  return with_note(leaf_spine(shape, links), uplinks->note);
}

std::optional<Plan> read_dual_tor(Section& section, PlanLinks links, const FileReader&) {
  DualTor shape;
  shape.pods = count(section, "pods", 1, 1, kMostPorts);
  shape.segments = count(section, "segments", 2, 1, kMostPorts);
  shape.hosts_per_segment = count(section, "hosts_per_segment", 8, 1, kMostPorts);
  shape.rails = count(section, "rails", 1, 1, 64);
  shape.planes = count(section, "planes", 2, 1, 2);
  const std::optional<Uplinks> uplinks = read_uplinks(
      section, "spines_per_plane", bps_of(links.host, shape.hosts_per_segment), links.fabric.rate);
  shape.cores_per_plane = count(section, "cores_per_plane", shape.pods == 1 ? 0 : 4,
                                shape.pods == 1 ? 0 : 1, kMostPorts);
  if (!uplinks) return std::nullopt;
  shape.spines_per_plane = uplinks->spines;
  links.fabric.rate = uplinks->rate;
  if (dual_tor_nodes(shape) > kMostNodes) {
    section.complain("segments", fmt::format("there may be {} nodes in all", kMostNodes));
    return std::nullopt;
  }
  const u64 tors_of_spine = u64{shape.segments} * shape.rails * 2 / shape.planes;
  if (std::max(tors_of_spine, u64{shape.pods} * shape.spines_per_plane) > kMostPorts) {
    section.complain("segments", fmt::format("a switch of the spine or core needs more than {} "
                                             "ports",
                                             kMostPorts));
    return std::nullopt;
  }
  return with_note(dual_tor(shape, links), uplinks->note);
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

struct TopologyKind {
  std::string_view name;
  std::optional<Plan> (*read)(Section&, PlanLinks, const FileReader&);
};
template <auto read>
std::optional<Plan> with(Section& section, PlanLinks links, const FileReader& read_file) {
  return read(section, links, read_file);
}
constexpr std::array kTopologies = {
    TopologyKind{"star", with<read_star>},
    TopologyKind{"dumbbell", with<read_dumbbell>},
    TopologyKind{"fat_tree", with<read_fat_tree>},
    TopologyKind{"leaf_spine", with<read_leaf_spine>},
    TopologyKind{"rail_optimized", with<read_rail_optimized>},
    TopologyKind{"dual_tor", with<read_dual_tor>},
    TopologyKind{"import", with<read_import>},
};

}  // namespace

std::optional<Plan> read_topology(Section section, const PlanLinks& links,
                                  const FileReader& read_file) {
  std::vector<std::string_view> names;
  for (const TopologyKind& kind : kTopologies) names.push_back(kind.name);
  const std::string word = section.text("kind", "");
  if (word.empty()) {  // which keys there are depends on it
    section.complain("kind", fmt::format("of what kind? {}", one_of({names.begin(), names.end()})));
    return std::nullopt;
  }
  const std::size_t kind = section.choice("kind", names.size(), names);
  if (kind == names.size()) return std::nullopt;
  std::optional<Plan> plan = kTopologies[kind].read(section, links, read_file);
  section.done();
  if (plan && plan->hosts.size() < 2) {
    section.complain("kind", "there are fewer than two hosts");
    return std::nullopt;
  }
  if (plan) note_largest_switch(*plan);
  return plan;
}

}  // namespace verbena::fabric
