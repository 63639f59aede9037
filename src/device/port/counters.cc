#include "device/port/counters.h"

#include <array>
#include <bit>

namespace verbena {

void add(EngineCounters& to, const EngineCounters& more) {
  // All fields are u64: field by field without naming them, so that a new one cannot be left out.
  using Fields = std::array<u64, sizeof(EngineCounters) / sizeof(u64)>;
  static_assert(sizeof(Fields) == sizeof(EngineCounters));
  Fields sum = std::bit_cast<Fields>(to);
  const Fields terms = std::bit_cast<Fields>(more);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += terms[i];
  to = std::bit_cast<EngineCounters>(sum);
}

}  // namespace verbena
