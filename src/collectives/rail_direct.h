// RailDirect: AllToAll in two hops, so that NIC i talks to NIC i alone and what one GPU sends to a
// node goes in one message: first within the node, to the GPU of the receiver's number, then to the
// receiver's node. NVIDIA calls it PXN.
//
//   g GPUs in each of m nodes, S bytes    bytes that a GPU sends
//   within its node                        S (g - 1) / g
//   between nodes                          S (m - 1) / m, in m - 1 rounds
// A rank's memory holds what it has, then what it passes on, then what it gets. Its own block is
// not moved: whoever prepares the memory puts it into the third part. There is one channel: one
// lane passes blocks on within the node, the other goes after it, node by node.
#pragma once

#include "collectives/schedule.h"

namespace verbena::collectives {

class RailDirect final : public Schedule {
 public:
  using Schedule::Schedule;

  [[nodiscard]] u32 lanes() const override { return 2; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override;
  [[nodiscard]] Step step(u32 rank, u32 lane, u64 index) const override;
  [[nodiscard]] Pipeline pipeline() const override;
  [[nodiscard]] Range input(u32) const override { return {0, shape().bytes}; }
  [[nodiscard]] Range output(u32) const override { return {2 * shape().bytes, shape().bytes}; }
  [[nodiscard]] u64 memory_bytes() const override { return 3 * shape().bytes; }

 private:
  enum Part : u8 { kHas, kPassesOn, kGets };
  [[nodiscard]] Range blocks(Part memory, u32 first, u32 count) const;
  [[nodiscard]] Step within_node(u32 rank, u64 index) const;
  [[nodiscard]] Step between_nodes(u32 rank, u64 index) const;
};

}  // namespace verbena::collectives
