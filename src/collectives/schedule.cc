#include "collectives/schedule.h"

#include <algorithm>

namespace verbena::collectives {

std::vector<u32> Schedule::receivers(u32 rank, u32 lane) const {
  std::vector<u32> found;
  const u64 end = steps_until_repeated(rank, lane);
  for (u64 index = 0; index < end; ++index)
    if (const Step step = this->step(rank, lane, index); step.action == Action::kSend)
      found.push_back(step.peer);
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

}  // namespace verbena::collectives
