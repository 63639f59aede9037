// XRCETH: XRC Extended Transport Header: the SRQ of a request. IBTA Annex A14, 4.1.
//   | rsvd (8) | XRCSRQ (24) |
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

struct XRCETH {
  static constexpr std::size_t kSize = 4;                                     // bytes
  u32 xrc_srq = 0;                                                            // 24 bits
  [[nodiscard]] static std::optional<XRCETH> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const XRCETH&, const XRCETH&) = default;
};

}  // namespace verbena
