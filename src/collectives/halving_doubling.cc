#include "collectives/halving_doubling.h"

#include <bit>
#include <utility>

namespace verbena::collectives {

HalvingDoubling::HalvingDoubling(const Shape& shape)
    : Schedule(shape),
      places_(std::bit_floor(shape.ranks)),
      rounds_(static_cast<u32>(std::countr_zero(places_))),
      folded_(shape.ranks - places_) {}

u32 HalvingDoubling::place_of(u32 rank) const {
  return rank < 2 * folded_ ? rank / 2 : rank - folded_;
}

u32 HalvingDoubling::rank_at(u32 place) const {
  return place < folded_ ? 2 * place : place + folded_;
}

// Returns the bit of a place's number that selects the half in a round.
u32 HalvingDoubling::bit(u32 round) const { return reduces_all() ? round : rounds_ - 1 - round; }

// Returns the blocks that a place keeps after `rounds` rounds of halving.
HalvingDoubling::Half HalvingDoubling::half_after(u32 place, u32 rounds) const {
  Half half{0, places_};
  for (u32 round = 0; round < rounds; ++round) {
    half.count /= 2;
    if ((place >> bit(round) & 1) != 0) half.first += half.count;
  }
  return half;
}

Range HalvingDoubling::channel(u32 lane) const {
  const Range whole{0, shape().bytes};
  return reduces_all() ? part(whole, shape().channels, lane, shape().element_bytes) : whole;
}

Range HalvingDoubling::own_part(u32 rank) const {
  return part({0, shape().bytes}, ranks(), rank, shape().element_bytes);
}

// A block is a place's: an equal part, or its ranks' own parts.
Range HalvingDoubling::range_of(u32 lane, const Half& half) const {
  const Range all = channel(lane);
  const auto begin = [&](u32 block) {
    if (block == places_) return all.end();
    return reduces_all() ? part(all, places_, block, shape().element_bytes).offset
                         : own_part(rank_at(block)).offset;
  };
  const u64 first = begin(half.first);
  return {first, begin(half.first + half.count) - first};
}

Step HalvingDoubling::fold_step(u32 rank, u32 lane) const {
  const Range range = halves() ? channel(lane) : own_part(rank | 1);
  if (is_folded(rank)) return {Action::kSend, rank - 1, range};
  return {halves() ? Action::kReduce : Action::kCopy, rank + 1, range};
}

Step HalvingDoubling::unfold_step(u32 rank, u32 lane) const {
  const Range range = doubles() ? channel(lane) : own_part(rank | 1);
  return is_folded(rank) ? Step{Action::kCopy, rank - 1, range}
                         : Step{Action::kSend, rank + 1, range};
}

Step HalvingDoubling::exchange(u32 rank, u32 lane, u64 index) const {
  const u64 number = index / 2 + (halves() ? 0 : rounds_);
  const bool halving = number < rounds_;
  const u32 round = static_cast<u32>(halving ? number : 2 * rounds_ - 1 - number);
  const u32 place = place_of(rank), partner = place ^ 1u << bit(round);
  const bool sends = index % 2 == 0;
  // Halving: what the partner keeps goes to it. Doubling: what this place has.
  const Half half = half_after(sends == halving ? partner : place, round + 1);
  const Action action = sends ? Action::kSend : halving ? Action::kReduce : Action::kCopy;
  return {action, rank_at(partner), range_of(lane, half)};
}

u64 HalvingDoubling::steps(u32 rank, u32) const {
  if (is_folded(rank)) return 2;
  const u64 exchanges = 2 * u64{rounds_} * (reduces_all() ? 2 : 1);
  return exchanges + (rank < 2 * folded_ ? 2 : 0);
}

Step HalvingDoubling::step(u32 rank, u32 lane, u64 index) const {
  if (rank >= 2 * folded_) return exchange(rank, lane, index);
  if (index == 0) return fold_step(rank, lane);
  if (index + 1 == steps(rank, lane)) return unfold_step(rank, lane);
  return exchange(rank, lane, index - 1);
}

Pipeline HalvingDoubling::pipeline() const {
  Pipeline pipeline;
  const auto add = [&](std::function<StepWindow(u32, u32)> window) {
    pipeline.stages.push_back({.lanes = lanes_of_channels(0, 1), .window = std::move(window)});
  };
  const auto first = [this](u32 rank, u32) { return StepWindow{0, rank < 2 * folded_ ? 1u : 0u}; };
  const auto last = [this](u32 rank, u32 lane) {
    return rank < 2 * folded_ ? StepWindow{steps(rank, lane) - 1, 1} : StepWindow{};
  };
  if (folded_ != 0) add(first);
  for (u32 round = 0; round < rounds_ * (reduces_all() ? 2 : 1); ++round)
    add([this, round](u32 rank, u32) {
      if (is_folded(rank)) return StepWindow{};
      return StepWindow{2 * u64{round} + (rank < 2 * folded_ ? 1 : 0), 2};
    });
  if (folded_ != 0) add(last);
  return pipeline;
}

Range HalvingDoubling::input(u32 rank) const {
  return halves() ? Range{0, shape().bytes} : own_part(rank);
}

Range HalvingDoubling::output(u32 rank) const {
  return doubles() ? Range{0, shape().bytes} : own_part(rank);
}

}  // namespace verbena::collectives
