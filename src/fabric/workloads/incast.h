// Incast: many hosts send to one at the same time.
#pragma once

#include <vector>

#include "fabric/flow.h"

namespace verbena::fabric {

struct Incast {
  NodeIndex to = 0;
  std::vector<NodeIndex> from;
  u64 bytes = 0;  // each
  Time start{};
  Duration stagger{};  // between the starts of two senders
};
[[nodiscard]] std::vector<Flow> incast(const Incast& incast);

}  // namespace verbena::fabric
