// Tree: AllReduce up and down a binary tree of all ranks, or up and down two of them with half of
// the data each; Broadcast down one.
//
//   n ranks, one a node, S bytes    bytes that a rank sends, at most    rounds to the first
//   result AllReduce                        S up, 2 S down                       2 depth on two
//   trees                     S / 2 up and S down, S / 2 up        2 depth Broadcast 2 S depth
// All ranks together send 2 S (n - 1) bytes (S (n - 1) for Broadcast). depth <= ceil(log2 n) + 1.
// Pieces of chunk_bytes follow each other, up on one lane and down on another.
// With more GPUs than one in a node, a tree joins the nodes at one GPU of each, of the same number
// everywhere, another for each tree and channel; within a node a tree of its own hangs on that GPU.
#pragma once

#include "collectives/binary_tree.h"
#include "collectives/schedule.h"

namespace verbena::collectives {

class Tree final : public Schedule {
 public:
  explicit Tree(const Shape& shape);

  [[nodiscard]] u32 lanes() const override { return shape().channels * trees_ * directions_; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override;
  [[nodiscard]] Step step(u32 rank, u32 lane, u64 index) const override;
  [[nodiscard]] u64 steps_until_repeated(u32 rank, u32 lane) const override;
  [[nodiscard]] Pipeline pipeline() const override;
  [[nodiscard]] Range input(u32) const override { return {0, shape().bytes}; }
  [[nodiscard]] Range output(u32) const override { return {0, shape().bytes}; }

 private:
  struct Lane {
    u32 channel = 0, tree = 0;
    bool goes_down = false;
  };
  [[nodiscard]] Lane at(u32 lane) const;
  [[nodiscard]] TreeNode node_of(u32 rank, const Lane& lane) const;  // of ranks
  [[nodiscard]] Range piece(const Lane& lane, u64 index) const;

  u32 trees_, directions_;
  u64 pieces_;
};

}  // namespace verbena::collectives
