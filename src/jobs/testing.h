// For tests: small networks.
#pragma once

#include <vector>

#include "fabric/topology.h"

namespace verbena::jobs {

struct TestNetwork {
  fabric::Topology topology;
  std::vector<fabric::NodeIndex> hosts;
};

inline TestNetwork star(u32 hosts, const fabric::LinkConfig& link) {
  TestNetwork network;
  for (u32 i = 0; i < hosts; ++i) network.hosts.push_back(network.topology.add_host());
  const fabric::NodeIndex hub = network.topology.add_switch();
  for (const fabric::NodeIndex host : network.hosts) network.topology.join(host, hub, link);
  return network;
}

// A leaf for the NICs of equal number of all nodes, and spines between the leaves.
inline TestNetwork rails(u32 nodes, u32 gpus, u32 spines, const fabric::LinkConfig& link) {
  TestNetwork network;
  for (u32 i = 0; i < nodes * gpus; ++i) network.hosts.push_back(network.topology.add_host());
  std::vector<fabric::NodeIndex> leaves;
  for (u32 rail = 0; rail < gpus; ++rail) leaves.push_back(network.topology.add_switch());
  for (u32 i = 0; i < nodes * gpus; ++i)
    network.topology.join(network.hosts[i], leaves[i % gpus], link);
  for (u32 i = 0; i < spines; ++i) {
    const fabric::NodeIndex spine = network.topology.add_switch();
    for (const fabric::NodeIndex leaf : leaves) network.topology.join(leaf, spine, link);
  }
  return network;
}

}  // namespace verbena::jobs
