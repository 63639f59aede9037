// Cluster: the GPUs of a job: nodes with the same number of them each, an NVLink switch between
// those of a node, and one NIC for each, a host of the fabric: NIC i serves GPU i. Rank r is GPU r
// % gpus_per_node of node r / gpus_per_node.
#pragma once

#include <vector>

#include "base/rate.h"
#include "fabric/topology.h"

namespace verbena::jobs {

// The switch between the GPUs of a node, each with one port. Defaults: NVLink 4 of H100, 18 links
// of 25 GB/s each way (NVIDIA H100 Tensor Core GPU Architecture, 2022); the latency is that of a
// store to another GPU's memory as microbenchmarks find it, about 0.7 us.
struct NVLinkConfig {
  Rate rate = gbps(3600);  // of a GPU's port, each way
  Duration latency = ns(700);
};

struct Cluster {
  u32 gpus_per_node = 1;
  std::vector<fabric::NodeIndex> nics;  // by rank
  NVLinkConfig nvlink{};

  [[nodiscard]] u32 ranks() const { return static_cast<u32>(nics.size()); }
  [[nodiscard]] bool share_a_node(u32 a, u32 b) const {
    return a / gpus_per_node == b / gpus_per_node;
  }
};

}  // namespace verbena::jobs
