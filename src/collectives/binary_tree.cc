#include "collectives/binary_tree.h"

#include <bit>

namespace verbena::collectives {
namespace {

u32 parent_of(u32 places, u32 place) {
  const u32 bit = place & (~place + 1);
  const u32 up = (place ^ bit) | bit << 1;
  return up < places ? up : place ^ bit;
}

TreeNode first_tree(u32 places, u32 place) {
  TreeNode node;
  if (place == 0) {
    if (places > 1) node.add(std::bit_floor(places - 1));
    return node;
  }
  node.parent = parent_of(places, place);
  const u32 half = (place & (~place + 1)) >> 1;
  if (half != 0) node.add(place - half);
  // The child above this place, at the end of this subtree: the nearest one that exists.
  for (u32 step = half; step != 0; step >>= 1) {
    if (place + step >= places) continue;
    node.add(place + step);
    break;
  }
  return node;
}

}  // namespace

TreeNode tree_node(u32 places, u32 place, u32 tree) {
  if (tree == 0) return first_tree(places, place);
  const bool mirrored = places % 2 == 0;
  const auto there = [&](u32 p) { return mirrored ? places - 1 - p : (p + places - 1) % places; };
  const auto back = [&](u32 p) { return mirrored ? places - 1 - p : (p + 1) % places; };
  TreeNode node = first_tree(places, there(place));
  if (node.parent != TreeNode::kNone) node.parent = back(node.parent);
  for (u32 i = 0; i < node.degree; ++i) node.children[i] = back(node.children[i]);
  return node;
}

}  // namespace verbena::collectives
