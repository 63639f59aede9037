// How often operator new was called: the data path must not (tests see to behaviour, this to cost).
#pragma once

#include <cstdint>

namespace bench {

[[nodiscard]] std::uint64_t allocations();

}  // namespace bench
