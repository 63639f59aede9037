// The protection of a device against senders that guess. All of it is off by default.
#pragma once

#include "base/types.h"

namespace verbena {

struct HardeningConfig {
  bool random_qpns = false;     // each QPN is drawn from the free ones
  u32 refusals_per_second = 0;  // of one source before it is not heard for a while; 0: no limit
};

}  // namespace verbena
