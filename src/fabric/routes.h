// Routes: where a node sends what is for a host: all neighbours that are nearest to it, by the
// number of links. One table for each node and group of hosts that hang on the same switch, so that
// thousands of hosts need no table of their own.
#pragma once

#include <span>
#include <vector>

#include "base/prefetch.h"
#include "fabric/topology.h"

namespace verbena::fabric {

class Routes {
 public:
  // `down`: links that are not there, by number; empty: none.
  explicit Routes(const Topology& topology, const std::vector<bool>& down = {});

  // Ports of `node`, in the order in which a hash chooses among them. Empty: there is no way.
  // `node` is not the destination.
  [[nodiscard]] std::span<const u16> ports(NodeIndex node, NodeIndex destination) const {
    if (attached_to_[destination] == node) return {&attached_port_[destination], 1};
    const u32 group = group_of_[destination];
    if (group == kNoGroup) return {};
    const u32 set = sets_at_[node * u64{groups_} + group];
    return {set_ports_.data() + set_begin_[set], set_begin_[set + 1] - set_begin_[set]};
  }
  // Fetches into the cache what ports() looks at for this node.
  void fetch(NodeIndex node) const {
    prefetch_octets(sets_at_.data() + node * u64{groups_}, groups_ * sizeof(u32));
  }

 private:
  static constexpr u32 kNoGroup = ~u32{0};
  struct Neighbour {
    NodeIndex node;
    u16 port;
  };

  void find_neighbours(const Topology& topology, const std::vector<bool>& down);
  void group_hosts(const Topology& topology);
  void find_ways(const Topology& topology, NodeIndex root, u32 group);
  u32 set_of(const std::vector<u16>& ports);

  u32 groups_ = 0;
  std::vector<std::vector<Neighbour>> neighbours_;  // of each node, the highest number first
  std::vector<NodeIndex> attached_to_;              // of a host: the node at its only link
  std::vector<u16> attached_port_;                  // and that node's port
  std::vector<u32> group_of_;                       // of a host
  std::vector<NodeIndex> roots_;                    // of each group
  std::vector<u32> sets_at_;                        // by node and group
  std::vector<u32> set_begin_;
  std::vector<u16> set_ports_;
};

}  // namespace verbena::fabric
