// Ring: AllReduce, ReduceScatter, AllGather and Broadcast around a ring of all ranks.
//
//   n ranks, S bytes        rounds, each a send and a receive   bytes that a rank sends
//   AllReduce                2 (n - 1)                           2 S (n - 1) / n
//   ReduceScatter, AllGather n - 1                               S (n - 1) / n
//   Broadcast                pieces of S, and n - 2 to fill      S, the last rank of the ring none
// A lane for each channel. Where blocks are longer than chunk_bytes, all rounds are done for the
// first chunk of each block, then for the next; a broadcast passes on one piece after another.
#pragma once

#include <vector>

#include "collectives/ring_order.h"
#include "collectives/schedule.h"

namespace verbena::collectives {

class Ring final : public Schedule {
 public:
  explicit Ring(const Shape& shape);

  [[nodiscard]] u32 lanes() const override { return shape().channels; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override;
  [[nodiscard]] Step step(u32 rank, u32 lane, u64 index) const override;
  [[nodiscard]] u64 steps_until_repeated(u32 rank, u32 lane) const override;
  [[nodiscard]] Pipeline pipeline() const override;
  [[nodiscard]] Range input(u32 rank) const override;
  [[nodiscard]] Range output(u32 rank) const override;

 private:
  [[nodiscard]] bool is_broadcast() const { return shape().operation == Operation::kBroadcast; }
  [[nodiscard]] u64 rounds() const;  // of one chunk of each block
  [[nodiscard]] Range whole() const { return {0, shape().bytes}; }
  [[nodiscard]] Range block(u32 channel, u32 owner, u64 chunk) const;
  [[nodiscard]] Range piece(u32 channel, u64 index) const;  // of a broadcast
  [[nodiscard]] u32 distance_from_root(u32 channel, u32 rank) const;
  [[nodiscard]] Step broadcast_step(u32 rank, u32 channel, u64 index) const;
  [[nodiscard]] u32 neighbour(u32 channel, u32 rank, u32 ahead) const;

  std::vector<RingOrder> orders_;  // by channel
  u64 chunks_ = 1;                 // of each block in a channel, or pieces of a broadcast
};

}  // namespace verbena::collectives
