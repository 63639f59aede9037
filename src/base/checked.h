// Sums and products of sizes that come from outside: from a program, the wire or a file. Returns
// nullopt if the result does not fit. A plain '+' would wrap, and a later check of bounds would
// pass.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <ranges>

namespace verbena {

template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_sum(T a, T b) {
  T sum;
  return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}

template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_product(T a, T b) {
  T product;
  return __builtin_mul_overflow(a, b, &product) ? std::nullopt : std::optional(product);
}

// Sums the sizes of many parts, which `size_of` (a function or a member) returns.
template <std::unsigned_integral T, std::ranges::input_range Parts, typename SizeOf>
[[nodiscard]] constexpr std::optional<T> checked_total(Parts&& parts, SizeOf size_of) {
  std::optional<T> total = T{0};
  for (const auto& part : parts)
    if (!(total = checked_sum<T>(*total, std::invoke(size_of, part)))) break;
  return total;
}

}  // namespace verbena
