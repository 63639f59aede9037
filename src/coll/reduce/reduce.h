// Combines arrays of elements, with the widest instructions that the processor has.
#pragma once

#include <cstddef>

#include "coll/data_type.h"
#include "coll/reduce/kernels.h"

namespace verbena::coll {

// The kernels for this processor; chosen once. VERBENA_COLL_ISA=scalar or avx2 asks for narrower
// ones.
[[nodiscard]] const Kernels& kernels();
// All that this processor can run, the widest last: for tests.
[[nodiscard]] const Kernels* const* kernels_here(std::size_t& count);

[[nodiscard]] bool has_operation(DataType type, ReduceOp op);
void combine(DataType type, ReduceOp op, void* to, const void* a, const void* b, std::size_t bytes);
void divide(DataType type, void* values, std::size_t bytes, u32 divisor);

}  // namespace verbena::coll
