#include "fabric/partition.h"

#include <algorithm>

namespace verbena::fabric {
namespace {

constexpr u32 kNoDomain = ~u32{0};

class Partitioning {
 public:
  Partitioning(const Topology& topology, u32 domains)
      : topology_(topology),
        neighbours_(topology.nodes),
        domain_of_(topology.nodes, kNoDomain),
        load_(domains) {
    for (const TopologyLink& link : topology.links) {
      neighbours_[link.a].push_back(link.b);
      neighbours_[link.b].push_back(link.a);
    }
  }

  std::vector<u32> run() {
    divide_hosts();
    std::vector<NodeIndex> next = beyond(nodes_that(false));
    while (!next.empty()) {
      for (const NodeIndex node : next) give(node, best_for(node));
      next = beyond(next);
    }
    for (const NodeIndex node : nodes_that(true))  // without a way to any host
      if (domain_of_[node] == kNoDomain) give(node, best_for(node));
    return std::move(domain_of_);
  }

 private:
  std::vector<NodeIndex> nodes_that(bool are_switches) const {
    std::vector<NodeIndex> nodes;
    for (NodeIndex node = 0; node < topology_.nodes; ++node)
      if (topology_.is_switch[node] == are_switches) nodes.push_back(node);
    return nodes;
  }
  void divide_hosts() {
    const std::vector<NodeIndex> hosts = nodes_that(false);
    for (std::size_t i = 0; i < hosts.size(); ++i)
      give(hosts[i], static_cast<u32>(i * load_.size() / hosts.size()));
  }
  // Nodes without a domain that are linked to some of these.
  std::vector<NodeIndex> beyond(const std::vector<NodeIndex>& nodes) const {
    std::vector<NodeIndex> found;
    for (const NodeIndex node : nodes)
      for (const NodeIndex neighbour : neighbours_[node])
        if (domain_of_[neighbour] == kNoDomain) found.push_back(neighbour);
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }
  // That of most neighbours; among equal ones, that which has least to do.
  u32 best_for(NodeIndex node) const {
    std::vector<u32> links(load_.size());
    for (const NodeIndex neighbour : neighbours_[node])
      if (domain_of_[neighbour] != kNoDomain) ++links[domain_of_[neighbour]];
    u32 best = 0;
    for (u32 domain = 1; domain < links.size(); ++domain)
      if (links[domain] > links[best] ||
          (links[domain] == links[best] && load_[domain] < load_[best]))
        best = domain;
    return best;
  }
  void give(NodeIndex node, u32 domain) {
    domain_of_[node] = domain;
    load_[domain] += neighbours_[node].size();
  }

  const Topology& topology_;
  std::vector<std::vector<NodeIndex>> neighbours_;
  std::vector<u32> domain_of_;
  std::vector<u64> load_;  // links of the nodes of each domain
};

}  // namespace

std::vector<u32> partition(const Topology& topology, u32 domains) {
  return Partitioning(topology, domains).run();
}

}  // namespace verbena::fabric
