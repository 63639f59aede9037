#include "coll/scripts/step_lists.h"

#include <algorithm>

namespace verbena::coll {

std::vector<u32> StepLists::receivers(u32 rank, u32 lane) const {
  std::vector<u32> found;
  for (const collectives::Step& step : list(rank, lane))
    if (step.action == collectives::Action::kSend) found.push_back(step.peer);
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

}  // namespace verbena::coll
