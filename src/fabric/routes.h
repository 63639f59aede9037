// Routes: the next hops of each node for each host: all neighbours that are nearest to the host, by
// the number of links. One table for each node and group of hosts that are attached to the same
// switches, so that thousands of hosts need no table of their own. A host with several links is
// reached by any of them, and has several paths itself; it forwards nothing.
#pragma once

#include <span>
#include <vector>

#include "base/prefetch.h"
#include "fabric/topology.h"

namespace verbena::fabric {

// ParallelLinks: which of several links between the same two nodes are used.
enum class ParallelLinks : u8 {
  kAll,
  kLast,  // that which is listed last, as HPCC's ns-3 model does it
};

class Routes {
 public:
  // `down`: links that are not there, by number; empty: none.
  explicit Routes(const Topology& topology, const std::vector<bool>& down = {},
                  ParallelLinks parallel = ParallelLinks::kAll);

  // Returns the ports of `node`, in the order in which a hash chooses among them; empty if there is
  // no path. `node` is not the destination.
  [[nodiscard]] std::span<const u16> ports(NodeIndex node, NodeIndex destination) const {
    const Place& place = places_[destination];
    if (place.attached_to == node) return {&place.port, 1};
    if (!more_links_.empty()) [[unlikely]]
      if (const std::span<const u16> direct = ports_to(destination, node); !direct.empty())
        return direct;
    if (place.group == kNoGroup) return {};
    const u32 set = sets_at_[node * u64{groups_} + place.group];
    return {set_ports_.data() + set_begin_[set], set_begin_[set + 1] - set_begin_[set]};
  }
  // Fetches into the cache what ports() looks at for this node.
  void fetch(NodeIndex node) const {
    prefetch_bytes(sets_at_.data() + node * u64{groups_}, groups_ * sizeof(u32));
  }

 private:
  static constexpr u32 kNoGroup = ~u32{0};
  struct Neighbour {
    NodeIndex node;
    u16 port, back;  // to it, and its own that leads back
  };
  struct Attachment {  // of a host to a node, by one or several links
    NodeIndex node;
    std::vector<u16> ports;  // the node's
  };

  void find_neighbours(const Topology& topology, const std::vector<bool>& down,
                       ParallelLinks parallel);
  void attach(const Topology& topology, NodeIndex host);
  void group_hosts(const Topology& topology);
  void find_ways(const Topology& topology, const std::vector<NodeIndex>& roots, u32 group);
  u32 set_of(const std::vector<u16>& ports);
  std::span<const u16> ports_to(NodeIndex host, NodeIndex from) const {
    for (const Attachment& attachment : more_links_[host])
      if (attachment.node == from) return attachment.ports;
    return {};
  }

  u32 groups_ = 0;
  std::vector<std::vector<Neighbour>> neighbours_;  // of each node, the highest number first
  // All attachments of each host that has several links. Empty if there is no such host.
  std::vector<std::vector<Attachment>> more_links_;
  struct Place {            // of a host
    NodeIndex attached_to;  // the node at its only link
    u32 group = kNoGroup;
    u16 port = 0;  // of that node
  };
  std::vector<Place> places_;
  std::vector<std::vector<NodeIndex>> roots_;  // the switches that each group hangs on
  std::vector<u32> sets_at_;                   // by node and group
  std::vector<u32> set_begin_;
  std::vector<u16> set_ports_;
};

}  // namespace verbena::fabric
