// RingRound: the data that one rank of a ring sends and receives in a round. Patarasuk and Yuan,
// "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", 2009. The data has as
// many blocks as the ring has ranks; in each round every rank sends one to its successor.
//   reduce-scatter: n - 1 rounds, after which the rank at position p has block p of the sum
//   all-gather:     n - 1 rounds, which begin with block p at position p
// An AllReduce is the one, then the other: 2 (n - 1) rounds.
#pragma once

#include "collectives/step.h"

namespace verbena::collectives {

struct RingRound {
  u64 send_block = 0, receive_block = 0;
  Action receive = Action::kCopy;
};

[[nodiscard]] constexpr RingRound reduce_scatter_round(u64 ranks, u64 position, u64 round) {
  const u64 behind = position + 2 * ranks - round;
  return {(behind - 1) % ranks, (behind - 2) % ranks, Action::kReduce};
}

[[nodiscard]] constexpr RingRound all_gather_round(u64 ranks, u64 position, u64 round) {
  const u64 behind = position + ranks - round;
  return {behind % ranks, (behind + ranks - 1) % ranks, Action::kCopy};
}

[[nodiscard]] constexpr RingRound all_reduce_round(u64 ranks, u64 position, u64 round) {
  return round < ranks - 1 ? reduce_scatter_round(ranks, position, round)
                           : all_gather_round(ranks, position, round - (ranks - 1));
}

}  // namespace verbena::collectives
