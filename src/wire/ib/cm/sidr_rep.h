// SIDRREP: Service ID Resolution Response. IBTA Vol 1, 12.11.2, table 120.
// Network order; behind the MAD header.
//   |                           RequestID                           |   0
//   |    Status     |    InfoLen    |           reserved            |   4
//   |                      QPN                      |     rsvd      |   8
//   |                        ServiceID (64)                         |  12
//   |                             Q_Key                             |  20
//   |             Additional Information (72 bytes)                 |  24
//   |                    Private Data (136 bytes)                   |  96
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

enum class SIDRStatus : u8 {  // table 121
  kValid = 0,                 // QPN and Q_Key are
  kServiceIDNotSupported = 1,
  kRejected = 2,
  kNoQP = 3,
  kRedirected = 4,
  kVersionNotSupported = 5,
};

struct SIDRREP {
  static constexpr Attribute kAttribute = Attribute::kSIDRREP;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kInfoSize = 72;          // bytes
  static constexpr std::size_t kPrivateDataSize = 136;  // bytes
  CommId request_id{};
  SIDRStatus status = SIDRStatus::kValid;  // any 8 bits when received
  u8 info_length = 0;
  QPN qpn{};
  ServiceId service_id{};
  QKey q_key{};
  std::array<u8, kInfoSize> info{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<SIDRREP> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const SIDRREP&, const SIDRREP&) = default;
};

}  // namespace verbena::cm
