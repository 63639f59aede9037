// The loops that combine two arrays, compiled once for each instruction set: kernels.inl.
#pragma once

#include <cstddef>

#include "coll/data_type.h"

namespace verbena::coll {

// to[i] = a[i] op b[i]. `to` may be `a` or `b`. All are aligned to their elements.
using Combine = void (*)(void* to, const void* a, const void* b, std::size_t count);
// values[i] = values[i] / divisor
using Divide = void (*)(void* values, std::size_t count, u32 divisor);

struct CombineRow {
  Combine of[kReduceOps];  // nullptr if the type has no such operation
};
struct Kernels {
  const char* name;
  CombineRow combine[kDataTypes];
  Divide divide[kDataTypes];
};

namespace scalar {
extern const Kernels kKernels;
}
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}

}  // namespace verbena::coll
