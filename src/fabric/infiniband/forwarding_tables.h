// ForwardingTables: what a subnet manager computes: LIDs, and for each switch its linear forwarding
// table, the port for each destination's LID. IBTA Vol 1, 14.2.5.6 (LinearForwardingTable), 18.2.4.
//
//   up_down   Links are up towards the roots, the switches farthest from hosts, or one of them
//   where
//             that is not a tree's (of equal ranks towards the lower number), and down else. Where
//             a way to the destination goes down only, it is taken; else one up. So none goes up
//             after down, and no cycle of buffers can wait for itself. Schroeder et al., Autonet,
//             1991, 4.2; OpenSM: updn
//   fat_tree  A tree alone, whose links join neighbouring ranks. Destinations are numbered along
//             the leaf switches; at each rank the number, divided by the ways up below it, says the
//             way up: d-mod-k. So the ways to a destination join, and every way up has as many
//             destinations. Zahavi, Fat-trees routing and node ordering providing contention free
//             traffic for MPI global collectives, JPDC 2012; OpenSM: ftree
//   min_hop   The fewest links; of equal ports that to which fewer destinations were given. OpenSM:
//             minhop. Cyclic where the topology is, and then it may deadlock
//   adaptive  As min_hop, with all the equal ports, among which switches choose
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/prefetch.h"
#include "fabric/infiniband/config.h"
#include "fabric/routes.h"

namespace verbena::fabric {

// Returns the LID of a host's port or a switch. 16 bits; 0x0001 .. kLIDs are unicast. IBTA 4.1.3
[[nodiscard]] constexpr u16 lid_of(NodeIndex node) { return static_cast<u16>(node + 1); }

class ForwardingTables {
 public:
  // Returns the link, by number, that keeps this engine from routing the topology; nullopt if none
  // does.
  [[nodiscard]] static std::optional<u32> obstacle(const Topology& topology, RoutingEngine engine);

  // `down`: links that are not there, by number; empty: none. Precondition: there is no obstacle.
  ForwardingTables(const Topology& topology, RoutingEngine engine,
                   const std::vector<bool>& down = {});

  // The ports for it: one, several with adaptive routing, or none where there is no way. `node` is
  // not the destination, which is a host.
  [[nodiscard]] std::span<const u16> ports(NodeIndex node, NodeIndex destination) const {
    if (equal_ways_) return equal_ways_->ports(node, destination);
    const u16& port = table_[u64{row_of_[node]} * columns_ + column_of_[destination]];
    return {&port, port != kNoPort ? 1u : 0u};
  }
  // Fetches into the cache what ports() looks at for this switch.
  void fetch(NodeIndex node) const {
    if (equal_ways_) equal_ways_->fetch(node);
  }

 private:
  static constexpr u16 kNoPort = 0xffff;

  u32 columns_ = 0;             // one for each host
  std::vector<u32> column_of_;  // of a host
  std::vector<u32> row_of_;     // of a switch; hosts share row 0, since they have one port
  std::vector<u16> table_;
  std::optional<Routes> equal_ways_;  // kAdaptive
};

}  // namespace verbena::fabric
