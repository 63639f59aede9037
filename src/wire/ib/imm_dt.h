// ImmDt and IETH: immediate data, and the R_Key that a SEND with Invalidate invalidates. IBTA Vol
// 1, 9.3.6 and 9.3.7. Network order, 32 bits each.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

struct ImmDt {
  static constexpr std::size_t kSize = 4;  // bytes
  u32 value = 0;  // host order here; abi/ handles the application's byte order
  [[nodiscard]] static std::optional<ImmDt> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const ImmDt&, const ImmDt&) = default;
};

struct IETH {
  static constexpr std::size_t kSize = 4;  // bytes
  RKey r_key{};
  [[nodiscard]] static std::optional<IETH> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const IETH&, const IETH&) = default;
};

}  // namespace verbena
