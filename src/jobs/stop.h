// Stop: asked now and then by what takes long, which tells how far it is. True ends it, with the
// mistake kInterrupted.
#pragma once

#include <functional>

#include "base/time.h"

namespace verbena::jobs {

struct Progress {
  Duration simulated{};
  u64 events = 0;
  std::function<double()> part;  // of all steps of all ranks. 0 .. 1; empty: nobody knows
};

using Stop = std::function<bool(const Progress&)>;

inline constexpr const char* kInterrupted = "interrupted";

}  // namespace verbena::jobs
