#include "collectives/tree.h"

#include "collectives/tree_moves.h"

namespace verbena::collectives {

Tree::Tree(const Shape& shape)
    : Schedule(shape),
      trees_(shape.algorithm == Algorithm::kDoubleTree ? 2 : 1),
      directions_(shape.operation == Operation::kBroadcast ? 1 : 2) {
  const u64 parts = u64{shape.channels} * trees_;
  pieces_ = pieces((shape.bytes + parts - 1) / parts, shape.chunk_bytes);
}

Tree::Lane Tree::at(u32 lane) const {
  return {.channel = lane / directions_ / trees_,
          .tree = lane / directions_ % trees_,
          .goes_down = directions_ == 1 || lane % 2 == 1};
}

TreeNode Tree::node_of(u32 rank, const Lane& lane) const {
  const Shape& s = shape();
  const u32 gpus = s.ranks_per_node, first_node = directions_ == 1 ? s.node_of(s.root) : 0;
  const u32 leader =
      directions_ == 1 ? s.local_of(s.root) : (lane.channel * trees_ + lane.tree) % gpus;
  const u32 node = s.node_of(rank), local = s.local_of(rank);
  const auto gpu_at = [&](u32 place) { return node * gpus + (leader + place) % gpus; };
  const auto leader_of = [&](u32 place) {
    return (first_node + place) % s.nodes() * gpus + leader;
  };

  const TreeNode inside = tree_node(gpus, (local + gpus - leader) % gpus, 0);
  TreeNode result;
  if (has_parent(inside)) result.parent = gpu_at(inside.parent);
  if (local == leader) {
    const u32 place = (node + s.nodes() - first_node) % s.nodes();
    const TreeNode outside = tree_node(s.nodes(), place, lane.tree);
    if (has_parent(outside)) result.parent = leader_of(outside.parent);
    for (u32 i = 0; i < outside.degree; ++i) result.add(leader_of(outside.children[i]));
  }
  for (u32 i = 0; i < inside.degree; ++i) result.add(gpu_at(inside.children[i]));
  return result;
}

Range Tree::piece(const Lane& lane, u64 index) const {
  const u64 element = shape().element_bytes;
  const Range whole{0, shape().bytes};
  const Range mine =
      part(whole, u64{shape().channels} * trees_, u64{lane.channel} * trees_ + lane.tree, element);
  return part(mine, pieces_, index, element);
}

u64 Tree::steps(u32 rank, u32 lane) const { return pieces_ * tree_moves(node_of(rank, at(lane))); }

u64 Tree::steps_until_repeated(u32 rank, u32 lane) const {
  return tree_moves(node_of(rank, at(lane)));
}

Step Tree::step(u32 rank, u32 lane, u64 index) const {
  const Lane where = at(lane);
  const TreeNode node = node_of(rank, where);
  const u64 moves = tree_moves(node), number = index / moves;
  const TreeMove move =
      where.goes_down ? down_move(node, index % moves) : up_move(node, index % moves);
  Step step{move.action, move.peer, piece(where, number)};
  const bool sum_is_here = where.goes_down && directions_ == 2 && !has_parent(node);
  if (sum_is_here && index % moves == 0) step.after = {lane - 1, (number + 1) * moves};
  return step;
}

Pipeline Tree::pipeline() const {
  const auto window = [this](u32 rank, u32 lane) {
    return StepWindow{0, steps(rank, lane) / pieces_};
  };
  // Levels within nodes take little time beside those between nodes.
  const u32 nodes = shape().nodes();
  const u64 levels = tree_depth(nodes > 1 ? nodes : shape().ranks_per_node);
  Pipeline pipeline{.pieces = pieces_, .stages = {}};
  for (u32 direction = 0; direction < directions_; ++direction)
    pipeline.stages.push_back(
        {.lanes = lanes_of_channels(direction, directions_), .levels = levels, .window = window});
  return pipeline;
}

}  // namespace verbena::collectives
