#include "jobs/flow_level/rank_classes.h"

#include <algorithm>
#include <map>
#include <set>

namespace verbena::jobs {
namespace {

// Returns the members that are the root of a Broadcast, by index. A root differs from the members
// that wait for it.
std::set<u32> roots_of(const Program& program, u32 communicator) {
  std::set<u32> roots;
  for (u32 i = 0; i < program.operations(); ++i)
    if (program.number_of_communicator(i) == communicator &&
        program.shape_of(i).operation == collectives::Operation::kBroadcast)
      roots.insert(program.shape_of(i).root);
  return roots;
}

}  // namespace

RankClasses::RankClasses(const Program& program) {
  for (u32 rank = 0; rank < program.ranks(); ++rank) class_of_.push_back(program.role_of(rank));
  while (refine(program)) {
  }
}

// Returns two numbers for each rank: one that identifies the classes of its group's members, and 1
// if the rank is a root there.
std::vector<std::vector<u32>> RankClasses::patterns(const Program& program, u32 number) const {
  const Communicator& communicator = program.communicator(number);
  const std::set<u32> roots = roots_of(program, number);
  std::map<std::vector<u32>, u32> known;
  std::vector<u32> of_group;
  for (u32 group = 0; group < communicator.groups(); ++group) {
    std::vector<u32> classes;
    for (u32 i = 0; i < communicator.size(); ++i)
      classes.push_back(class_of_[communicator.member(group, i)]);
    of_group.push_back(
        known.try_emplace(std::move(classes), static_cast<u32>(known.size())).first->second);
  }
  std::vector<std::vector<u32>> patterns;
  for (u32 rank = 0; rank < program.ranks(); ++rank) {
    const u32 group = communicator.group_of(rank);
    if (group == Communicator::kNone)
      patterns.push_back({Communicator::kNone, 0});
    else
      patterns.push_back({of_group[group], u32{roots.contains(communicator.index_of(rank))}});
  }
  return patterns;
}

// Returns false if no class was split.
bool RankClasses::refine(const Program& program) {
  std::vector<std::vector<u32>> signs(program.ranks());
  for (u32 rank = 0; rank < program.ranks(); ++rank) signs[rank].push_back(class_of_[rank]);
  for (u32 i = 0; i < program.communicators(); ++i) {
    const std::vector<std::vector<u32>> more = patterns(program, i);
    for (u32 rank = 0; rank < program.ranks(); ++rank)
      signs[rank].insert(signs[rank].end(), more[rank].begin(), more[rank].end());
  }
  const std::size_t before = representative_.size();
  representative_.clear();
  std::map<std::vector<u32>, u32> known;
  for (u32 rank = 0; rank < program.ranks(); ++rank) {
    const auto [at, is_new] = known.try_emplace(std::move(signs[rank]), known.size());
    class_of_[rank] = at->second;
    if (is_new) representative_.push_back(rank);
  }
  return representative_.size() != before;
}

}  // namespace verbena::jobs
