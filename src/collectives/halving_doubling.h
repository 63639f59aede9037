// HalvingDoubling: AllReduce as a reduce-scatter by recursive halving and an all-gather by
// recursive doubling; ReduceScatter and AllGather as one of the two. R. Thakur, R. Rabenseifner and
// W. Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.
//
//   n = 2^k ranks, S bytes    rounds     bytes that a rank sends
//   AllReduce                  2 k        2 S (n - 1) / n
//   ReduceScatter, AllGather   k          S (n - 1) / n
// Where n is no power of two, each rank 2 i + 1 of the first ones gives its data to rank 2 i
// before, and gets its result from it after: one round and at most S bytes more, at either end.
//
// AllReduce begins with the nearest rank, to which it sends most: inside a node where there is one.
// The others end with (begin with) their own part, which leaves them no choice but the farthest
// first (last). Channels and chunks: channels cut an AllReduce; the others have one.
#pragma once

#include "collectives/schedule.h"

namespace verbena::collectives {

class HalvingDoubling final : public Schedule {
 public:
  explicit HalvingDoubling(const Shape& shape);

  [[nodiscard]] u32 lanes() const override { return reduces_all() ? shape().channels : 1; }
  [[nodiscard]] u64 steps(u32 rank, u32 lane) const override;
  [[nodiscard]] Step step(u32 rank, u32 lane, u64 index) const override;
  [[nodiscard]] Pipeline pipeline() const override;
  [[nodiscard]] Range input(u32 rank) const override;
  [[nodiscard]] Range output(u32 rank) const override;

 private:
  struct Half {
    u32 first = 0, count = 0;  // blocks
  };
  [[nodiscard]] bool reduces_all() const { return shape().operation == Operation::kAllReduce; }
  [[nodiscard]] bool halves() const { return shape().operation != Operation::kAllGather; }
  [[nodiscard]] bool doubles() const { return shape().operation != Operation::kReduceScatter; }
  [[nodiscard]] bool is_folded(u32 rank) const { return rank < 2 * folded_ && rank % 2 == 1; }
  [[nodiscard]] u32 place_of(u32 rank) const;
  [[nodiscard]] u32 rank_at(u32 place) const;
  [[nodiscard]] u32 bit(u32 round) const;
  [[nodiscard]] Half half_after(u32 place, u32 rounds) const;
  [[nodiscard]] Range range_of(u32 lane, const Half& half) const;
  [[nodiscard]] Range channel(u32 lane) const;
  [[nodiscard]] Range own_part(u32 rank) const;
  [[nodiscard]] Step fold_step(u32 rank, u32 lane) const;
  [[nodiscard]] Step unfold_step(u32 rank, u32 lane) const;
  [[nodiscard]] Step exchange(u32 rank, u32 lane, u64 index) const;

  u32 places_;  // of the core: a power of two
  u32 rounds_;  // log2 of it
  u32 folded_;  // ranks outside of it
};

}  // namespace verbena::collectives
