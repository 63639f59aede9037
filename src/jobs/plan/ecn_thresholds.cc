#include "jobs/plan/ecn_thresholds.h"

namespace verbena::jobs {

ECNThresholds ecn_thresholds(Rate rate) {
  constexpr u64 kUnit = 25'000'000'000, kMin = 100'000;
  const auto k_min = static_cast<u64>(static_cast<unsigned __int128>(kMin) * rate.bps() / kUnit);
  return {.k_min = k_min, .k_max = 4 * k_min};
}

u64 marks_before_pauses(const SharedBufferShape& shape) {
  const double queues = static_cast<double>(shape.lossless_priorities) * shape.ports;
  const double left =
      static_cast<double>(shape.bytes) - queues * static_cast<double>(shape.headroom);
  if (left <= 0) return 0;
  return static_cast<u64>(shape.beta * left / (queues * (shape.beta + 1)));
}

}  // namespace verbena::jobs
