// CHECK: our own invariants, on in release too. A broken invariant ends the process and prints its
// place. Mistakes of the network and of the application are values, never a CHECK.
#pragma once

namespace verbena {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace verbena

#define CHECK(condition)                             \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::verbena::check_failed(#condition, __FILE__, __LINE__))
#define CHECK_UNREACHABLE() ::verbena::check_failed("unreachable", __FILE__, __LINE__)
