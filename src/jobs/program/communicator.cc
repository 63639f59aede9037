#include "jobs/program/communicator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace verbena::jobs {

Communicator::Communicator(std::string name, std::vector<std::vector<u32>> groups, u32 ranks,
                           u32 ranks_per_node)
    : name_(std::move(name)),
      groups_(std::move(groups)),
      group_of_(ranks, kNone),
      index_of_(ranks, kNone) {
  CHECK(!groups_.empty());
  for (u32 group = 0; group < groups_.size(); ++group) {
    CHECK(groups_[group].size() == groups_.front().size());
    for (u32 index = 0; index < size(); ++index) {
      const u32 rank = groups_[group][index];
      CHECK(group_of_[rank] == kNone);
      group_of_[rank] = group;
      index_of_[rank] = index;
    }
  }
  for (u32 members = std::min(size(), ranks_per_node); members > 1; --members)
    if (is_in_nodes_of(members, ranks_per_node)) {
      members_per_node_ = members;
      break;
    }
}

bool Communicator::is_in_nodes_of(u32 members, u32 ranks_per_node) const {
  if (size() % members != 0) return false;
  for (const std::vector<u32>& group : groups_)
    for (u32 index = 0; index < size(); ++index) {
      const u32 first = index - index % members;
      if (group[index] / ranks_per_node != group[first] / ranks_per_node) return false;
    }
  return true;
}

}  // namespace verbena::jobs
