#include "jobs/flow_level/ways.h"

#include <algorithm>

#include "base/prng.h"

namespace verbena::jobs {

Ways::Ways(const fabric::Topology& topology)
    : topology_(topology), begin_(topology.nodes + 1), switch_number_(topology.nodes) {
  for (const fabric::TopologyLink& link : topology.links)
    for (const fabric::NodeIndex node : {link.a, link.b}) ++begin_[node + 1];
  for (u32 node = 0; node < topology.nodes; ++node) begin_[node + 1] += begin_[node];
  edges_.resize(begin_.back());
  std::vector<u32> at(begin_.begin(), begin_.end() - 1);
  for (u32 i = 0; i < topology.links.size(); ++i) {
    const fabric::TopologyLink& link = topology.links[i];
    edges_[at[link.a]++] = {link.b, 2 * i};
    edges_[at[link.b]++] = {link.a, 2 * i + 1};
  }
  for (fabric::NodeIndex node = 0; node < topology.nodes; ++node) {
    if (!topology.is_switch[node]) continue;
    switch_number_[node] = static_cast<u32>(switches_.size());
    switches_.push_back(node);
  }
  hops_.resize(switches_.size());
}

const std::vector<u16>& Ways::hops_to(fabric::NodeIndex goal) {
  std::vector<u16>& hops = hops_[switch_number_[goal]];
  if (!hops.empty()) return hops;
  hops.assign(switches_.size(), kFar);
  hops[switch_number_[goal]] = 0;
  std::vector<fabric::NodeIndex> reached{goal};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const u16 next = static_cast<u16>(hops[switch_number_[reached[i]]] + 1);
    for (u32 e = begin_[reached[i]]; e != begin_[reached[i] + 1]; ++e) {
      const fabric::NodeIndex node = edges_[e].to;
      if (!topology_.is_switch[node] || hops[switch_number_[node]] <= next) continue;
      hops[switch_number_[node]] = next;
      reached.push_back(node);
    }
  }
  return hops;
}

// Returns one of the pairs of links that are nearest to each other, chosen by the flow.
std::optional<Ways::Ends> Ways::ends_of(fabric::NodeIndex from, fabric::NodeIndex to, u64 flow) {
  std::vector<Ends> nearest;
  u16 least = kFar;
  for (const Edge& up : edges_of(from))
    for (const Edge& down : edges_of(to)) {
      if (!topology_.is_switch[up.to] || !topology_.is_switch[down.to]) continue;
      const u16 hops = hops_to(down.to)[switch_number_[up.to]];
      if (hops == kFar || hops > least) continue;
      if (hops < least) nearest.clear();
      least = hops;
      nearest.push_back({up, down});
    }
  if (nearest.empty()) return std::nullopt;
  if (nearest.size() == 1) return nearest.front();
  return nearest[PRNG(flow * 0x9e3779b97f4a7c15 + from).below(nearest.size())];
}

bool Ways::find(fabric::NodeIndex from, fabric::NodeIndex to, u64 flow, std::vector<u32>& out) {
  for (const Edge& edge : edges_of(from))
    if (edge.to == to) {
      out.push_back(edge.direction);
      return true;
    }
  const std::optional<Ends> ends = ends_of(from, to, flow);
  if (!ends) return false;
  const auto& [up, down] = *ends;
  const std::vector<u16>& hops = hops_to(down.to);
  out.push_back(up.direction);
  for (fabric::NodeIndex node = up.to; node != down.to;) {
    const u16 nearer = static_cast<u16>(hops[switch_number_[node]] - 1);
    const auto is_nearer = [&](const Edge& edge) {
      return topology_.is_switch[edge.to] && hops[switch_number_[edge.to]] == nearer;
    };
    const auto first = edges_.begin() + begin_[node], last = edges_.begin() + begin_[node + 1];
    const auto count = static_cast<u64>(std::count_if(first, last, is_nearer));
    u64 skip = PRNG(flow * 0x9e3779b97f4a7c15 + node).below(count);
    auto edge = std::find_if(first, last, is_nearer);
    for (; skip != 0; --skip) edge = std::find_if(edge + 1, last, is_nearer);
    out.push_back(edge->direction);
    node = edge->to;
  }
  out.push_back(down.direction ^ 1);
  return true;
}

}  // namespace verbena::jobs
