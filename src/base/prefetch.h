// Fetches memory that will be needed soon into the cache. Always inlined: GCC otherwise assumes
// that a function which only prefetches has no effect, and removes its calls.
#pragma once

#include <cstddef>

namespace verbena {

[[gnu::always_inline]] inline void prefetch_bytes(const void* from, std::size_t bytes) {
  const char* const first = static_cast<const char*>(from);
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(first + i);
}

template <typename T>
[[gnu::always_inline]] inline void prefetch_object(const T& object) {
  prefetch_bytes(&object, sizeof(T));
}

}  // namespace verbena
