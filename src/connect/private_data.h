// Private data from a program into a message: the rest of the field is zeros. IBTA Vol 1, 12.7.35.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/types.h"

namespace verbena {

// `data` fits: the caller has refused what does not.
template <std::size_t N>
std::array<u8, N> padded(std::span<const u8> data) {
  CHECK(data.size() <= N);
  std::array<u8, N> field{};
  std::ranges::copy(data, field.begin());
  return field;
}

}  // namespace verbena
