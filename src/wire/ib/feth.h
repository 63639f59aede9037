// FETH: FLUSH Extended Transport Header, in FLUSH. IBTA Vol 1, Annex A19, 9.4.1. Network order.
//    0                8               16              24       26      28
//   |                     reserved                  | rsvd  | SEL   |  PLT  |
// PLT, placement type: bit 0 global visibility, bit 1 persistence. SEL, selectivity level: the
// range of the RETH, or all of its region. Invariant: decode(encode(h)) == h. Reserved bits: sent
// as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

enum class FlushSelectivity : u8 { kRange = 0, kRegion = 1 };  // 2 bits: 2 and 3 are reserved

struct FETH {
  static constexpr std::size_t kSize = 4;  // bytes
  bool global = false;                     // earlier writes are visible to all
  bool persistent = false;                 // and outlive a power failure
  FlushSelectivity selectivity = FlushSelectivity::kRange;
  [[nodiscard]] static std::optional<FETH> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const FETH&, const FETH&) = default;
};

}  // namespace verbena
