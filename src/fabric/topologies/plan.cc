#include "fabric/topologies/plan.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace verbena::fabric {
namespace {

constexpr u32 kNoTier = ~u32{0};

std::optional<u32> number(std::string_view text) {
  u32 value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::vector<std::vector<NodeIndex>> neighbours(const Topology& topology) {
  std::vector<std::vector<NodeIndex>> of(topology.nodes);
  for (const TopologyLink& link : topology.links) {
    of[link.a].push_back(link.b);
    of[link.b].push_back(link.a);
  }
  return of;
}

}  // namespace

NodeIndex Plan::add_host(std::string name) {
  names.push_back(std::move(name));
  hosts.push_back(topology.add_host());
  return hosts.back();
}

NodeIndex Plan::add_switch(std::string name) {
  names.push_back(std::move(name));
  return topology.add_switch();
}

std::optional<NodeIndex> Plan::host_named(std::string_view name) const {
  for (const NodeIndex host : hosts)
    if (names[host] == name) return host;
  const std::optional<u32> place = number(name);
  if (!place || *place >= hosts.size()) return std::nullopt;
  return hosts[*place];
}

std::string Plan::link_name(u32 link) const {
  return fmt::format("{}-{}", names[topology.links[link].a], names[topology.links[link].b]);
}

std::optional<u32> Plan::link_named(std::string_view name) const {
  for (u32 i = 0; i < topology.links.size(); ++i) {
    const TopologyLink& link = topology.links[i];
    if (name == link_name(i) || name == fmt::format("{}-{}", names[link.b], names[link.a]))
      return i;
  }
  const std::optional<u32> place = number(name);
  if (!place || *place >= topology.links.size()) return std::nullopt;
  return place;
}

std::vector<u32> tiers(const Topology& topology) {
  const std::vector<std::vector<NodeIndex>> next_to = neighbours(topology);
  std::vector<u32> tier(topology.nodes, kNoTier);
  std::vector<NodeIndex> order;
  for (NodeIndex node = 0; node < topology.nodes; ++node)
    if (!topology.is_switch[node]) {
      tier[node] = 0;
      order.push_back(node);
    }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const NodeIndex next : next_to[order[i]])
      if (tier[next] == kNoTier) {
        tier[next] = tier[order[i]] + 1;
        order.push_back(next);
      }
  std::ranges::replace(tier, kNoTier, 1u);  // switches on their own
  return tier;
}

std::vector<std::vector<NodeIndex>> islands(const Plan& plan) {
  const std::vector<std::vector<NodeIndex>> next_to = neighbours(plan.topology);
  std::vector<u32> island_of(plan.topology.nodes, kNoTier);
  std::vector<std::vector<NodeIndex>> found;
  for (const NodeIndex host : plan.hosts) {
    if (island_of[host] == kNoTier) {
      const u32 island = static_cast<u32>(found.size());
      found.emplace_back();
      std::vector<NodeIndex> order{host};
      island_of[host] = island;
      for (std::size_t i = 0; i < order.size(); ++i)
        for (const NodeIndex next : next_to[order[i]])
          if (island_of[next] == kNoTier) {
            island_of[next] = island;
            order.push_back(next);
          }
    }
    found[island_of[host]].push_back(host);
  }
  return found;
}

}  // namespace verbena::fabric
