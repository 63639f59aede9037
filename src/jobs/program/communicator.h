// Communicator: groups of ranks, of equal size and without common members, that do the same
// operations, each group for itself: the tensor parallel groups of a job, say. Their operations
// follow each other, as those of NCCL's communicators do on a stream.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace verbena::jobs {

class Communicator {
 public:
  static constexpr u32 kNone = ~u32{0};

  // Ranks: those of the job, `ranks` in all, with so many in each node.
  Communicator(std::string name, std::vector<std::vector<u32>> groups, u32 ranks,
               u32 ranks_per_node);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] u32 groups() const { return static_cast<u32>(groups_.size()); }
  [[nodiscard]] u32 size() const { return static_cast<u32>(groups_.front().size()); }
  // kNone: of no group.
  [[nodiscard]] u32 group_of(u32 rank) const { return group_of_[rank]; }
  [[nodiscard]] u32 index_of(u32 rank) const { return index_of_[rank]; }  // in its group
  [[nodiscard]] u32 member(u32 group, u32 index) const { return groups_[group][index]; }
  // Members that share a node follow each other in every group, so many in each node; 1: where
  // they do not.
  [[nodiscard]] u32 members_per_node() const { return members_per_node_; }

 private:
  [[nodiscard]] bool is_in_nodes_of(u32 members, u32 ranks_per_node) const;

  std::string name_;
  std::vector<std::vector<u32>> groups_;
  std::vector<u32> group_of_, index_of_;  // by rank
  u32 members_per_node_ = 1;
};

}  // namespace verbena::jobs
