// How often operator new was called, and how much memory it has given and not taken back: the data
// path must not call it (tests see to behaviour, this to cost).
#pragma once

#include <cstdint>

namespace bench {

[[nodiscard]] std::uint64_t allocations();
[[nodiscard]] std::uint64_t bytes_in_use();  // with what the allocator rounds up

}  // namespace bench
