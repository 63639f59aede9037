// The elements that a measurement sends, and those that it expects: small numbers that depend on
// the rank and the place, so that every type adds them exactly.
#pragma once

#include <vector>

#include "perf/options.h"

namespace verbena::perf {

inline constexpr u64 kPeriod = 251;  // of the places

// Elements of a rank's buffer, `count` of them, from place `first` on.
void fill(void* buffer, u64 count, coll::DataType type, coll::ReduceOp op, u32 rank, u64 first);
// Returns how many elements differ from those that `rank` sent.
[[nodiscard]] u64 count_wrong(const void* buffer, u64 count, coll::DataType type, coll::ReduceOp op,
                              u32 rank, u64 first);
// Returns how many elements differ from the reduction of those that all `ranks` sent.
[[nodiscard]] u64 count_wrong_reduced(const void* buffer, u64 count, coll::DataType type,
                                      coll::ReduceOp op, u32 ranks, u64 first);

}  // namespace verbena::perf
