// RelayTree: the way of a chunk from the member of a group that reads it from the source, its root,
// to all other members. Each root has its own tree, and all trees have the same shape: a member
// reads from the one that is a step before it. So a member needs few connections, and all members
// send equally much when each is a root.
//
// A step is a digit times a power of kBase. The distance of a member from the root is a number of
// several digits, and its parent is that without the highest digit: groups of up to kBase members
// read from the root itself.
#pragma once

#include <vector>

#include "base/types.h"

namespace verbena::jobs {

class RelayTree {
 public:
  static constexpr u32 kBase = 8;

  explicit RelayTree(u32 members);
  // Returns the member from which `member` reads what `root` has read. `member` is not the root.
  [[nodiscard]] u32 parent_of(u32 member, u32 root) const;
  [[nodiscard]] std::vector<u32> children_of(u32 member, u32 root) const;
  // Returns the members that are its parent or child in any tree, ascending.
  [[nodiscard]] std::vector<u32> neighbours_of(u32 member) const;

 private:
  [[nodiscard]] u32 distance(u32 member, u32 root) const;
  [[nodiscard]] static u32 last_step_to(u32 distance);
  u32 members_;
  std::vector<u32> steps_{};  // ascending
};

}  // namespace verbena::jobs
