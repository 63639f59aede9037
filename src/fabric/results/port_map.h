// PortMap: which port of which node is which end of which link. Ports are numbered as topology.h
// says.
#pragma once

#include <vector>

#include "fabric/topology.h"

namespace verbena::fabric {

// One end of a link, and so one direction: what is sent there.
struct LinkEnd {
  NodeIndex node = 0, peer = 0;
  u32 port = 0;  // among the node's
  u32 link = 0;
  bool is_b = false;
};

class PortMap {
 public:
  explicit PortMap(const Topology& topology);

  // Both ends of link i are at 2 * i (a) and 2 * i + 1 (b).
  [[nodiscard]] const std::vector<LinkEnd>& ends() const { return ends_; }
  [[nodiscard]] u32 end_of(NodeIndex node, u32 port) const {
    return by_port_[first_port_[node] + port];
  }

 private:
  std::vector<LinkEnd> ends_;
  std::vector<u32> first_port_, by_port_;
};

}  // namespace verbena::fabric
