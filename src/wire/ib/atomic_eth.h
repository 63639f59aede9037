// AtomicETH and AtomicAckETH: operands and result of CmpSwap and FetchAdd.
// IBTA Vol 1, 9.3.4 and 9.3.5.3. Network order.
//   AtomicETH:    | Virtual Address (64) | R_Key (32) | Swap or Add (64) | Compare (64) |
//   AtomicAckETH: | Original Remote Data (64) |
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

inline constexpr u32 kAtomicBytes = 8;  // the operand of each atomic operation, aligned

struct AtomicETH {
  static constexpr std::size_t kSize = 28;  // bytes
  u64 virtual_address = 0;
  RKey r_key{};
  u64 swap_or_add = 0;
  u64 compare = 0;
  [[nodiscard]] static std::optional<AtomicETH> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const AtomicETH&, const AtomicETH&) = default;
};

struct AtomicAckETH {
  static constexpr std::size_t kSize = 8;  // bytes
  u64 original_data = 0;
  // Returns nullopt if it is short.
  [[nodiscard]] static std::optional<AtomicAckETH> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const AtomicAckETH&, const AtomicAckETH&) = default;
};

}  // namespace verbena
