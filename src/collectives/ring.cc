#include "collectives/ring.h"

#include <algorithm>

#include "base/check.h"
#include "collectives/ring_round.h"

namespace verbena::collectives {

Ring::Ring(const Shape& shape) : Schedule(shape) {
  for (u32 channel = 0; channel < shape.channels; ++channel)
    orders_.emplace_back(this->shape(), channel);
  const u64 parts = u64{shape.channels} * (is_broadcast() ? 1 : shape.ranks);
  const u64 longest = (shape.bytes + parts - 1) / parts;
  chunks_ = pieces(longest, shape.chunk_bytes);
}

u64 Ring::rounds() const {
  const u64 once = shape().ranks - 1;
  return shape().operation == Operation::kAllReduce ? 2 * once : once;
}

// Every rank's part of the data is cut for the channels, then into chunks, so that a ReduceScatter
// ends where it must.
Range Ring::block(u32 channel, u32 owner, u64 chunk) const {
  const u64 element = shape().element_bytes;
  const Range mine = part(whole(), shape().ranks, owner, element);
  return part(part(mine, shape().channels, channel, element), chunks_, chunk, element);
}

Range Ring::piece(u32 channel, u64 index) const {
  const u64 element = shape().element_bytes;
  return part(part(whole(), shape().channels, channel, element), chunks_, index, element);
}

u32 Ring::neighbour(u32 channel, u32 rank, u32 ahead) const {
  const RingOrder& order = orders_[channel];
  return order.rank_at((order.position_of(rank) + ahead) % ranks());
}

u32 Ring::distance_from_root(u32 channel, u32 rank) const {
  const RingOrder& order = orders_[channel];
  return (order.position_of(rank) + ranks() - order.position_of(shape().root)) % ranks();
}

u64 Ring::steps(u32 rank, u32 lane) const {
  if (!is_broadcast()) return 2 * rounds() * chunks_;
  const u32 distance = distance_from_root(lane, rank);
  return chunks_ * (distance == 0 || distance == ranks() - 1 ? 1 : 2);
}

// Around a ring they are always the same two.
u64 Ring::steps_until_repeated(u32 rank, u32 lane) const {
  return std::min<u64>(2, steps(rank, lane));
}

Step Ring::broadcast_step(u32 rank, u32 channel, u64 index) const {
  const u32 distance = distance_from_root(channel, rank);
  const bool does_both = distance != 0 && distance != ranks() - 1;
  const Range range = piece(channel, does_both ? index / 2 : index);
  if (distance == 0 || (does_both && index % 2 == 1))
    return {Action::kSend, neighbour(channel, rank, 1), range};
  return {Action::kCopy, neighbour(channel, rank, ranks() - 1), range};
}

Step Ring::step(u32 rank, u32 lane, u64 index) const {
  if (is_broadcast()) return broadcast_step(rank, lane, index);
  const RingOrder& order = orders_[lane];
  const u64 chunk = index / 2 / rounds(), number = index / 2 % rounds();
  const u32 position = order.position_of(rank);
  const auto round_of = shape().operation == Operation::kAllReduce   ? all_reduce_round
                        : shape().operation == Operation::kAllGather ? all_gather_round
                                                                     : reduce_scatter_round;
  const RingRound round = round_of(ranks(), position, number);
  const bool sends = index % 2 == 0;
  const u64 owner = order.rank_at(static_cast<u32>(sends ? round.send_block : round.receive_block));
  const Range range = block(lane, static_cast<u32>(owner), chunk);
  return sends ? Step{Action::kSend, neighbour(lane, rank, 1), range}
               : Step{round.receive, neighbour(lane, rank, ranks() - 1), range};
}

Pipeline Ring::pipeline() const {
  Stage stage{.lanes = lanes_of_channels(0, 1), .window = {}};
  if (!is_broadcast()) {
    stage.rounds = rounds() * chunks_;
    stage.pace = Pace::kRing;
    stage.window = [](u32, u32) { return StepWindow{0, 2}; };
    return {.stages = {stage}};
  }
  stage.levels = ranks() - 1;
  stage.pace = Pace::kRing;
  stage.window = [this](u32 rank, u32 lane) { return StepWindow{0, steps(rank, lane) / chunks_}; };
  return {.pieces = chunks_, .stages = {stage}};
}

Range Ring::input(u32 rank) const {
  return shape().operation == Operation::kAllGather
             ? part(whole(), ranks(), rank, shape().element_bytes)
             : whole();
}

Range Ring::output(u32 rank) const {
  return shape().operation == Operation::kReduceScatter
             ? part(whole(), ranks(), rank, shape().element_bytes)
             : whole();
}

}  // namespace verbena::collectives
