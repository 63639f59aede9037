// The memory that one more connected RC QP takes while it is idle: what its creation and its
// connection leave allocated, averaged over many. No time is measured.
//
// usage: count_memory [DEPTH [LIMIT]]     WQEs in each of its queues (1); bytes (no limit)
// prints: the bytes of one QP. The exit status is 1 if they are more than LIMIT.
#include <cstdio>

#include "bench/limits/process.h"
#include "bench/micro/allocations.h"
#include "bench/micro/device_pair.h"

namespace {

constexpr verbena::u32 kCount = 1000;

std::uint64_t bytes_of_one(verbena::u32 depth) {
  bench::DevicePair pair;
  const std::uint64_t before = bench::bytes_in_use();
  for (verbena::u32 i = 0; i < kCount; ++i) pair.connect(depth);
  return (bench::bytes_in_use() - before) / (2 * kCount);  // one at either end
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3) {
    std::fprintf(stderr, "usage: count_memory [DEPTH [LIMIT]]\n");
    return 2;
  }
  const std::size_t depth = argc > 1 ? limits::number(argv[1]) : 1;
  const std::uint64_t bytes = bytes_of_one(static_cast<verbena::u32>(depth));
  std::printf("%llu\n", static_cast<unsigned long long>(bytes));
  return argc > 2 && bytes > limits::number(argv[2]) ? 1 : 0;
}
