// DETH: Datagram Extended Transport Header. IBTA Vol 1, 9.3.2. Network order.
//   | Q_Key (32) | rsvd (8) | Source QP (24) |
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

struct DETH {
  static constexpr std::size_t kSize = 8;  // bytes
  QKey q_key{};
  QPN source_qp{};
  [[nodiscard]] static std::optional<DETH> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const DETH&, const DETH&) = default;
};

}  // namespace verbena
