// Ways: the links from one host to another in a topology of any size: shortest ones, chosen at each
// switch by a hash of the flow, as ECMP does. Only switches that hosts hang on are goals, and only
// switches have tables, so that 100,000 hosts cost no more than their links.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fabric/topology.h"

namespace verbena::jobs {

class Ways {
 public:
  explicit Ways(const fabric::Topology& topology);

  // Appends links' directions: 2 * the number of a link from its a to its b, one more from b to a.
  // Returns false and leaves `out` unchanged if there is no path.
  [[nodiscard]] bool find(fabric::NodeIndex from, fabric::NodeIndex to, u64 flow,
                          std::vector<u32>& out);

 private:
  static constexpr u16 kFar = 0xffff;
  struct Edge {
    fabric::NodeIndex to;
    u32 direction;
  };

  struct Ends {
    Edge up, down;  // of the two hosts
  };

  const std::vector<u16>& hops_to(fabric::NodeIndex goal);
  [[nodiscard]] std::span<const Edge> edges_of(fabric::NodeIndex node) const {
    return std::span(edges_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }
  std::optional<Ends> ends_of(fabric::NodeIndex from, fabric::NodeIndex to, u64 flow);

  const fabric::Topology& topology_;
  std::vector<u32> begin_;  // of each node's edges
  std::vector<Edge> edges_;
  std::vector<u32> switch_number_;  // of each node; hosts: none
  std::vector<fabric::NodeIndex> switches_;
  std::vector<std::vector<u16>> hops_;  // by goal and switch; empty: not asked for yet
};

}  // namespace verbena::jobs
