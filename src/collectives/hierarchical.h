// Hierarchical: AllReduce with as little as possible between nodes. Within a node each GPU gets a
// shard of the sum; GPUs of the same number, one in each node, sum their shard over the nodes,
// along a ring or a binary tree; within the nodes the shards go to all. So NIC i talks to NIC i
// alone.
//
//   g GPUs in each of m nodes, S bytes    rounds           bytes that a GPU sends
//   within its node                        2                2 S (g - 1) / g
//   between nodes, ring                    2 (m - 1)        2 (S / g) (m - 1) / m
//   between nodes, tree                    2 depth          S / g up, 2 S / g down, at most
// Each channel is cut into pieces such that no message between nodes is longer than chunk_bytes:
// g * m * chunk_bytes with a ring, g * chunk_bytes with a tree. Within a node the
// shard of a piece is one message. While one piece is summed over the nodes, the next is within
// them: a lane for each of the three parts (four with a tree). A channel has up to eight pieces for
// that overlap even where fewer would do, if messages between nodes stay at chunk_bytes / 8 or
// above: with shorter ones the rounds' latency costs more than the overlap saves.
#pragma once

#include "collectives/binary_tree.h"
#include "collectives/schedule.h"

namespace verbena::collectives {

class Hierarchical final : public Schedule {
 public:
  explicit Hierarchical(const Shape& shape);

  [[nodiscard]] u32 lanes() const override { return shape().channels * parts_; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override;
  [[nodiscard]] Step step(u32 rank, u32 lane, u64 index) const override;
  [[nodiscard]] u64 steps_until_repeated(u32 rank, u32 lane) const override {
    return steps_of_piece(rank, lane);
  }
  [[nodiscard]] Pipeline pipeline() const override;
  [[nodiscard]] Range input(u32) const override { return {0, shape().bytes}; }
  [[nodiscard]] Range output(u32) const override { return {0, shape().bytes}; }

 private:
  [[nodiscard]] bool has_tree() const { return shape().algorithm == Algorithm::kHierarchicalTree; }
  [[nodiscard]] u64 steps_of_piece(u32 rank, u32 part) const;
  [[nodiscard]] Range shard(u32 channel, u64 piece, u32 local) const;
  [[nodiscard]] TreeNode node_in_tree(u32 rank, u32 channel) const;
  [[nodiscard]] Step within_node(u32 rank, u32 lane, u64 piece, u64 index) const;
  [[nodiscard]] Step around_ring(u32 rank, u32 lane, u64 piece, u64 index) const;
  [[nodiscard]] Step along_tree(u32 rank, u32 lane, u64 piece, u64 index) const;

  u32 parts_;       // lanes of a channel
  u64 pieces_ = 1;  // of a channel
};

}  // namespace verbena::collectives
