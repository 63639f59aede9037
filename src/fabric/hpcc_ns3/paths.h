// Paths: what HPCC's ns-3 model knows of the way between two hosts: the first of the shortest ones.
#pragma once

#include <vector>

#include "fabric/routes.h"

namespace verbena::fabric::hpcc_ns3 {

// Bytes times this, by bit/s: nanoseconds.
inline constexpr u64 kNanosecondBits = 8'000'000'000;

struct Path {
  u64 delay_ns = 0;         // of its links, one way
  u64 transmission_ns = 0;  // of a full payload without headers, over each link
  u64 slowest_bps = 0;

  [[nodiscard]] u64 round_trip_ns() const { return 2 * delay_ns + transmission_ns; }
  [[nodiscard]] u64 bytes_in_flight() const {  // the bandwidth-delay product
    return round_trip_ns() * slowest_bps / 1'000'000'000 / 8;
  }
};

class Paths {
 public:
  // Both outlive it. `payload`: bytes of a full packet's.
  Paths(const Topology& topology, const Routes& routes, u32 payload);

  // Returns the path between two different hosts, all zeros if there is none.
  [[nodiscard]] Path between(NodeIndex source, NodeIndex destination) const;
  // Extent: the greatest and the least values over all pairs of hosts.
  struct Extent {
    u64 longest_ns = 0, shortest_ns = ~u64{0};  // round trips
    u64 most_bytes = 0, least_bytes = ~u64{0};
  };
  [[nodiscard]] Extent extent() const;

 private:
  struct End {
    NodeIndex peer;
    u32 link;
  };
  const End& end(NodeIndex node, u32 port) const { return ends_[first_[node] + port]; }
  std::vector<NodeIndex> representatives() const;

  const Topology& topology_;
  const Routes& routes_;
  const u32 payload_;
  std::vector<u32> first_;  // of each node's ports
  std::vector<End> ends_;
};

}  // namespace verbena::fabric::hpcc_ns3
