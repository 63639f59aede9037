// Copies private data from a program into a message and fills the field with zeros. IBTA Vol 1,
// 12.7.35.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "base/types.h"

namespace verbena {

// Precondition: `data` fits; the caller has refused longer data.
template <std::size_t N>
std::array<u8, N> padded(std::span<const u8> data) {
  CHECK(data.size() <= N);
  std::array<u8, N> field{};
  std::ranges::copy(data, field.begin());
  return field;
}

}  // namespace verbena
