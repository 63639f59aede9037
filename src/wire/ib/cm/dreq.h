// DREQ: Request for communication Release: disconnect. IBTA Vol 1, 12.6.10, table 112.
// Network order; behind the MAD header.
//   |                    Local Communication ID                     |   0
//   |                    Remote Communication ID                    |   4
//   |                Remote QPN/EECN                |     rsvd      |   8
//   |                    Private Data (220 bytes)                   |  12
// Remote QPN: the receiver's, so that a stray DREQ ends nothing.
// Invariant: decode(encode(r)) == r. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/cm/fields.h"
#include "wire/ib/cm/ids.h"

namespace verbena::cm {

struct DREQ {
  static constexpr Attribute kAttribute = Attribute::kDREQ;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kPrivateDataSize = 220;  // bytes
  CommId local_comm_id{}, remote_comm_id{};
  QPN remote_qpn{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<DREQ> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const DREQ&, const DREQ&) = default;
};

}  // namespace verbena::cm
