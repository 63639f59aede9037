// StorageConfig: reads of training data over NVMe-oF beside what the GPUs of a job do.
#pragma once

#include <optional>
#include <vector>

#include "base/rate.h"
#include "fabric/topology.h"

namespace verbena::jobs {

struct StorageConfig {
  static constexpr u32 kMostServersOfGPU = 4;  // that one GPU reads from, in turns

  std::vector<fabric::NodeIndex> servers;
  std::optional<Rate> read;      // of each GPU; if none, queue_depth limits it
  u64 amount = ~u64{0};          // bytes that each GPU reads, and no more
  u32 block_bytes = 128 * 1024;  // of one command
  u32 queue_depth = 32;          // commands of one GPU that are under way
  u8 priority = 3;
  Duration medium{};  // from a command's arrival to the data being there
};

}  // namespace verbena::jobs
