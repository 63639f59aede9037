// TreeMove: one step of a node of a tree for one piece of the data. On the way up the node adds the
// data of its children and sends the sum to its parent. On the way down it receives the piece from
// its parent and sends it to its children. `peer` is numbered as in the node.
#pragma once

#include "collectives/binary_tree.h"
#include "collectives/step.h"

namespace verbena::collectives {

struct TreeMove {
  Action action = Action::kSend;
  u32 peer = 0;
};

[[nodiscard]] constexpr bool has_parent(const TreeNode& node) {
  return node.parent != TreeNode::kNone;
}
// Returns the number of moves of one piece, in either direction.
[[nodiscard]] constexpr u32 tree_moves(const TreeNode& node) {
  return node.degree + (has_parent(node) ? 1 : 0);
}
[[nodiscard]] constexpr TreeMove up_move(const TreeNode& node, u64 index) {
  return index < node.degree ? TreeMove{Action::kReduce, node.children[index]}
                             : TreeMove{Action::kSend, node.parent};
}
[[nodiscard]] constexpr TreeMove down_move(const TreeNode& node, u64 index) {
  if (!has_parent(node)) return {Action::kSend, node.children[index]};
  return index == 0 ? TreeMove{Action::kCopy, node.parent}
                    : TreeMove{Action::kSend, node.children[index - 1]};
}

}  // namespace verbena::collectives
