#include "tests/support/refused_allocations.h"

#ifdef VERBENA_CAN_REFUSE_ALLOCATIONS

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace verbena::test {

thread_local int allocations_left = -1;

namespace {

std::atomic<int> refused_allocations{0};

bool is_refused() {
  if (allocations_left < 0 || allocations_left-- != 0) return false;
  ++refused_allocations;
  return true;
}

}  // namespace

void refuse_each_allocation_of(const std::function<bool()>& call) {
  constexpr int kMost = 500;
  for (int n = 0; n < kMost; ++n) {
    SCOPED_TRACE(n);
    const int before = refused_allocations;
    errno = 0;
    allocations_left = n;
    const bool succeeded = call();
    const int error = errno;
    allocations_left = -1;
    if (!succeeded) {
      EXPECT_EQ(error, ENOMEM);
    } else if (refused_allocations == before) {
      return;  // it needs no more than n
    }
  }
  FAIL() << "it allocates without an end";
}

}  // namespace verbena::test

extern "C" {

void* __libc_malloc(std::size_t size);

void* malloc(std::size_t size) {
  if (!verbena::test::is_refused()) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

}  // extern "C"

#endif
