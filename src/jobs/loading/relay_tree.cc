#include "jobs/loading/relay_tree.h"

#include <set>

namespace verbena::jobs {

RelayTree::RelayTree(u32 members) : members_(members) {
  for (u64 power = 1; power < members; power *= kBase)
    for (u64 step = power; step < std::min<u64>(power * kBase, members); step += power)
      steps_.push_back(static_cast<u32>(step));
}

u32 RelayTree::distance(u32 member, u32 root) const {
  return (member + members_ - root) % members_;
}

u32 RelayTree::last_step_to(u32 distance) {
  u64 power = 1;
  while (power * kBase <= distance) power *= kBase;
  return static_cast<u32>(distance / power * power);
}

u32 RelayTree::parent_of(u32 member, u32 root) const {
  return (member + members_ - last_step_to(distance(member, root))) % members_;
}

std::vector<u32> RelayTree::children_of(u32 member, u32 root) const {
  std::vector<u32> children;
  const u32 here = distance(member, root);
  for (const u32 step : steps_)
    if (step < members_ - here && last_step_to(here + step) == step)
      children.push_back((member + step) % members_);
  return children;
}

std::vector<u32> RelayTree::neighbours_of(u32 member) const {
  std::set<u32> neighbours;
  for (const u32 step : steps_) {
    neighbours.insert((member + step) % members_);
    neighbours.insert((member + members_ - step) % members_);
  }
  return {neighbours.begin(), neighbours.end()};
}

}  // namespace verbena::jobs
