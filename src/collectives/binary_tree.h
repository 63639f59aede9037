// A binary tree of any number of places, by rule: in-order numbering, so that near places are
// joined by short ways, and a second tree whose inner nodes are the first one's leaves. P. Sanders,
// J. Speck and J. L. Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", 2009.
//
// First tree: the parent of a place that ends in binary 10..0 is that with the next bit set
// instead, or, where there is none, with it cleared; place 0 is the root and has one child. The
// second: with an even number of places the first one mirrored, with an odd one the first one
// shifted by one.
#pragma once

#include <array>
#include <bit>

#include "base/types.h"

namespace verbena::collectives {

struct TreeNode {
  static constexpr u32 kNone = ~u32{0};
  u32 parent = kNone;
  u32 degree = 0;  // of these, so many are
  std::array<u32, 3> children{kNone, kNone, kNone};

  constexpr void add(u32 child) { children[degree++] = child; }
};

// Edges between the root and the farthest place.
[[nodiscard]] constexpr u32 tree_depth(u32 places) {
  return places < 2 ? 0 : static_cast<u32>(std::bit_width(places - 1));
}
// tree: 0 or 1
[[nodiscard]] TreeNode tree_node(u32 places, u32 place, u32 tree);

}  // namespace verbena::collectives
