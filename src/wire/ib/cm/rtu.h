// RTU: Ready To Use: the active side has seen the REP. IBTA Vol 1, 12.6.9, table 111.
// Network order; behind the MAD header.
//   |                    Local Communication ID                     |   0
//   |                    Remote Communication ID                    |   4
//   |                    Private Data (224 bytes)                   |   8
// Invariant: decode(encode(r)) == r.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/cm/fields.h"
#include "wire/ib/cm/ids.h"

namespace verbena::cm {

struct RTU {
  static constexpr Attribute kAttribute = Attribute::kRTU;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kPrivateDataSize = 224;  // bytes
  CommId local_comm_id{}, remote_comm_id{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<RTU> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const RTU&, const RTU&) = default;
};

}  // namespace verbena::cm
