#include "collectives/hierarchical.h"

#include <algorithm>

#include "collectives/ring_round.h"
#include "collectives/tree_moves.h"

namespace verbena::collectives {
namespace {

constexpr u64 kOverlapped = 8;  // pieces that let the parts of the algorithm overlap
constexpr u64 kShortest = 8;    // messages between nodes are not cut below chunk / kShortest

}  // namespace

Hierarchical::Hierarchical(const Shape& shape)
    : Schedule(shape), parts_(shape.algorithm == Algorithm::kHierarchicalTree ? 4 : 3) {
  if (shape.chunk_bytes == 0) return;
  const u64 of_channel = (shape.bytes + shape.channels - 1) / shape.channels;
  // A ring cuts a shard for the nodes, a tree does not.
  const u64 messages = u64{shape.ranks_per_node} * (has_tree() ? 1 : shape.nodes());
  const u64 longest = shape.chunk_bytes * messages;
  const u64 shortest = std::max<u64>(1, shape.chunk_bytes / kShortest) * messages;
  pieces_ = std::max(pieces(of_channel, longest), std::min(kOverlapped, of_channel / shortest));
}

Range Hierarchical::shard(u32 channel, u64 piece, u32 local) const {
  const u64 element = shape().element_bytes;
  const Range mine = part({0, shape().bytes}, shape().channels, channel, element);
  return part(part(mine, pieces_, piece, element), shape().ranks_per_node, local, element);
}

// Every second channel has the second tree, so that no node is a leaf, or inside, for all data.
TreeNode Hierarchical::node_in_tree(u32 rank, u32 channel) const {
  return tree_node(shape().nodes(), shape().node_of(rank), channel % 2);
}

u64 Hierarchical::steps_of_piece(u32 rank, u32 lane) const {
  const u32 which = lane % parts_;
  if (which == 0 || which + 1 == parts_) return 2 * (shape().ranks_per_node - 1);
  return has_tree() ? tree_moves(node_in_tree(rank, lane / parts_)) : 4 * (shape().nodes() - 1);
}

u64 Hierarchical::steps(u32 rank, u32 lane) const { return pieces_ * steps_of_piece(rank, lane); }

Step Hierarchical::step(u32 rank, u32 lane, u64 index) const {
  const u64 in_piece = steps_of_piece(rank, lane), piece = index / in_piece;
  const u32 which = lane % parts_;
  Step step = which == 0 || which + 1 == parts_ ? within_node(rank, lane, piece, index % in_piece)
              : has_tree()                      ? along_tree(rank, lane, piece, index % in_piece)
                                                : around_ring(rank, lane, piece, index % in_piece);
  if (index % in_piece != 0) return step;
  // This part starts with the data that an earlier part has produced, if that part has steps.
  for (u32 before = 1; before <= which; ++before) {
    const u64 its_steps = steps_of_piece(rank, lane - before);
    if (its_steps == 0) continue;
    const bool needs_it =
        !(has_tree() && which == 2 && has_parent(node_in_tree(rank, lane / parts_)));
    if (needs_it) step.after = {lane - before, (piece + 1) * its_steps};
    break;
  }
  return step;
}

// At first every GPU receives its own shard from all others, at the end the shards of all others.
Step Hierarchical::within_node(u32 rank, u32 lane, u64 piece, u64 index) const {
  const u32 gpus = shape().ranks_per_node, local = shape().local_of(rank), first = rank - local;
  const u32 channel = lane / parts_, distance = static_cast<u32>(index / 2) + 1;
  const u32 to = (local + distance) % gpus, from = (local + gpus - distance) % gpus;
  const bool scatters = lane % parts_ == 0;
  if (index % 2 == 0)
    return {Action::kSend, first + to, shard(channel, piece, scatters ? to : local)};
  return scatters ? Step{Action::kReduce, first + from, shard(channel, piece, local)}
                  : Step{Action::kCopy, first + from, shard(channel, piece, from)};
}

Step Hierarchical::around_ring(u32 rank, u32 lane, u64 piece, u64 index) const {
  const u32 nodes = shape().nodes(), node = shape().node_of(rank), gpus = shape().ranks_per_node;
  const u32 local = shape().local_of(rank);
  const Range mine = shard(lane / parts_, piece, local);
  const RingRound round = all_reduce_round(nodes, node, index / 2);
  const auto block = [&](u64 number) { return part(mine, nodes, number, shape().element_bytes); };
  const auto rank_in = [&](u32 other) { return other % nodes * gpus + local; };
  return index % 2 == 0
             ? Step{Action::kSend, rank_in(node + 1), block(round.send_block)}
             : Step{round.receive, rank_in(node + nodes - 1), block(round.receive_block)};
}

Step Hierarchical::along_tree(u32 rank, u32 lane, u64 piece, u64 index) const {
  const TreeNode node = node_in_tree(rank, lane / parts_);
  const TreeMove move = lane % parts_ == 1 ? up_move(node, index) : down_move(node, index);
  const u32 local = shape().local_of(rank);
  return {move.action, move.peer * shape().ranks_per_node + local,
          shard(lane / parts_, piece, local)};
}

Pipeline Hierarchical::pipeline() const {
  const auto pair = [](u32, u32) { return StepWindow{0, 2}; };
  const auto piece = [this](u32 rank, u32 lane) {
    return StepWindow{0, steps_of_piece(rank, lane)};
  };
  Pipeline pipeline{.pieces = pieces_, .stages = {}};
  const auto add = [&](u64 rounds, u64 levels, const std::function<StepWindow(u32, u32)>& window) {
    const u32 first = static_cast<u32>(pipeline.stages.size());
    pipeline.stages.push_back({.lanes = lanes_of_channels(first, parts_),
                               .rounds = rounds,
                               .levels = levels,
                               .window = window});
  };
  const u64 within = shape().ranks_per_node - 1, nodes = shape().nodes();
  add(within, 1, pair);
  if (!has_tree()) {
    add(2 * (nodes - 1), 1, pair);
    pipeline.stages.back().pace = Pace::kRing;
  }
  for (u32 direction = 0; has_tree() && direction < 2; ++direction)
    add(1, tree_depth(shape().nodes()), piece);
  add(within, 1, pair);
  return pipeline;
}

}  // namespace verbena::collectives
