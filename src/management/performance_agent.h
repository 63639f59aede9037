// The performance management agent of a node: PortCounters and PortCountersExtended, read and
// cleared. IBTA Vol 1, 16.1.
#pragma once

#include <span>

#include "management/node.h"

namespace verbena::management {

// Makes the MAD its own answer; false: it is dropped. `in` as for answer_smp().
[[nodiscard]] bool answer_performance(Node& node, u8 in, std::span<u8, kMADSize> mad);

}  // namespace verbena::management
