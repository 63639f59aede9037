// A page of memory's size, and where memory is, for this layer's tests.
#pragma once

#include <cstddef>

#include "base/types.h"

namespace verbena::test {

inline constexpr std::size_t kPage = 4096;

inline u64 address_of(const void* pointer) { return reinterpret_cast<u64>(pointer); }

}  // namespace verbena::test
