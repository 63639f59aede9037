// FabricClock: the simulated time of a fabric as all its processes compute it, from the host's
// clock: it advances by 1 while that advances by `scale`, or stands still.
#pragma once

#include <algorithm>

#include "base/time.h"
#include "base/types.h"

namespace verbena::host {

struct FabricClock {
  Time simulated, real;  // that belong together
  u32 scale = 1;         // 1 and more
  bool runs = false;

  [[nodiscard]] Time at(Time now) const {
    return runs && now > real ? simulated + (now - real) / scale : simulated;
  }
  // When it will be so late; never(): not while the clock stands. Not before `simulated`'s.
  [[nodiscard]] Time when(Time at) const {
    constexpr i64 kFar = i64{1} << 62;
    if (at == Time::never() || !runs) return Time::never();
    const i64 left = std::max<i64>((at - simulated).ps(), 0);
    return left > kFar / scale - real.ps() / scale ? Time::never()
                                                   : real + Duration::from_ps(left) * scale;
  }
};

}  // namespace verbena::host
