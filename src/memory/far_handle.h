// FarHandle: names a far region for other processes of this host that use the same driver, as
// CUDA's IPC handles do. It is published beside the region's key (memory/published_keys.h); only
// the kind of memory that made it knows what it says.
#pragma once

#include <array>

#include "base/types.h"

namespace verbena {

struct FarHandle {
  std::array<u64, 8> opaque{};  // the driver's; zeros: other processes cannot open it
  u64 offset = 0;               // of the region's first byte in what the handle opens
  u64 address = 0;              // of that byte, in the process that has published it
  u64 identity = 0;             // of the allocation there

  friend bool operator==(const FarHandle&, const FarHandle&) = default;
};

}  // namespace verbena
