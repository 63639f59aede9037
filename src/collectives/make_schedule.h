// The schedule of an operation by an algorithm.
#pragma once

#include <memory>
#include <string>

#include "collectives/schedule.h"

namespace verbena::collectives {

inline constexpr u32 kMaxRanks = 1u << 20;
inline constexpr u32 kMaxChannels = 64;
inline constexpr u64 kMaxOctets = u64{1} << 40;

// What an algorithm cannot do, or a shape that is none; "": make_schedule() takes it.
[[nodiscard]] std::string refusal(const Shape& shape);
// Precondition: refusal(shape) is "". The schedule's shape() may differ: an AllToAll has as many
// octets less as its ranks do not divide, and what has no channels has one.
[[nodiscard]] std::unique_ptr<Schedule> make_schedule(const Shape& shape);

}  // namespace verbena::collectives
