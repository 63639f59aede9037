#include "coll/reduce/reduce.h"

#include <cstdlib>
#include <cstring>

namespace verbena::coll {
namespace {

struct Here {
  const Kernels* sets[3] = {&scalar::kKernels};
  std::size_t count = 1;

  Here() {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) sets[count++] = &avx2::kKernels;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
      sets[count++] = &avx512::kKernels;
  }
};

const Here& here() {
  static const Here here;
  return here;
}

const Kernels& choose() {
  const Here& all = here();
  const char* const asked = std::getenv("VERBENA_COLL_ISA");
  for (std::size_t i = 0; asked != nullptr && i < all.count; ++i)
    if (std::strcmp(all.sets[i]->name, asked) == 0) return *all.sets[i];
  return *all.sets[all.count - 1];
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

const Kernels* const* kernels_here(std::size_t& count) {
  count = here().count;
  return here().sets;
}

bool has_operation(DataType type, ReduceOp op) {
  return kernels().combine[static_cast<u32>(type)].of[static_cast<u32>(op)] != nullptr;
}

void combine(DataType type, ReduceOp op, void* to, const void* a, const void* b,
             std::size_t bytes) {
  kernels().combine[static_cast<u32>(type)].of[static_cast<u32>(op)](to, a, b,
                                                                     bytes / size_of(type));
}

void divide(DataType type, void* values, std::size_t bytes, u32 divisor) {
  kernels().divide[static_cast<u32>(type)](values, bytes / size_of(type), divisor);
}

}  // namespace verbena::coll
