// The schedule of an operation by an algorithm.
#pragma once

#include <memory>
#include <string>

#include "collectives/schedule.h"

namespace verbena::collectives {

inline constexpr u32 kMaxRanks = 1u << 20;
inline constexpr u32 kMaxChannels = 64;
inline constexpr u64 kMaxBytes = u64{1} << 40;

// Returns why the algorithm cannot run the shape, or why the shape is invalid; "" if
// make_schedule() accepts it.
[[nodiscard]] std::string refusal(const Shape& shape);
// Precondition: refusal(shape) is "". The schedule's shape() may differ: the bytes of an AllToAll
// are rounded down to whole elements for each rank, and an algorithm without channels gets one.
[[nodiscard]] std::unique_ptr<Schedule> make_schedule(const Shape& shape);

}  // namespace verbena::collectives
