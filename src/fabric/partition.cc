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
        weights_(topology.nodes),
        load_(domains) {
    u64 all = 0;
    for (const TopologyLink& link : topology.links) {
      neighbours_[link.a].push_back(link.b);
      neighbours_[link.b].push_back(link.a);
      for (const NodeIndex node : {link.a, link.b}) weights_[node] += weight_of(link);
      all += 2 * weight_of(link);
    }
    share_ = all / domains;
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
  // Returns the domain with most neighbours of the node, of those below their share; among equal
  // ones, the one with the least load.
  u32 best_for(NodeIndex node) const {
    std::vector<u32> links(load_.size());
    for (const NodeIndex neighbour : neighbours_[node])
      if (domain_of_[neighbour] != kNoDomain) ++links[domain_of_[neighbour]];
    const auto is_better = [&](u32 domain, u32 than) {
      const bool has_room = load_[domain] < share_;
      if (has_room != (load_[than] < share_)) return has_room;
      if (has_room && links[domain] != links[than]) return links[domain] > links[than];
      return load_[domain] < load_[than];
    };
    u32 best = 0;
    for (u32 domain = 1; domain < links.size(); ++domain)
      if (is_better(domain, best)) best = domain;
    return best;
  }
  void give(NodeIndex node, u32 domain) {
    domain_of_[node] = domain;
    load_[domain] += weights_[node];
  }
  // The traffic of a link depends on its rate; an unlimited link counts like the fastest one.
  static u64 weight_of(const TopologyLink& link) {
    constexpr u64 kFastest = 1'600'000'000'000;
    return std::min(link.config.rate.bps(), kFastest);
  }

  const Topology& topology_;
  std::vector<std::vector<NodeIndex>> neighbours_;
  std::vector<u32> domain_of_;
  std::vector<u64> weights_;  // of each node: of its links
  std::vector<u64> load_;     // of each domain: of its nodes
  u64 share_ = 0;             // of each domain, of all nodes
};

}  // namespace

std::vector<u32> partition(const Topology& topology, u32 domains) {
  return Partitioning(topology, domains).run();
}

}  // namespace verbena::fabric
