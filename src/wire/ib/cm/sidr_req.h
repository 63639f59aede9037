// SIDRREQ: Service ID Resolution Request: which UD QP serves this ServiceID? IBTA Vol 1, 12.11.1,
// table 119. Network order; behind the MAD header.
//   |                           RequestID                           |   0
//   |         Partition Key         |           reserved            |   4
//   |                        ServiceID (64)                         |   8
//   |                    Private Data (216 bytes)                   |  16
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

struct SIDRREQ {
  static constexpr Attribute kAttribute = Attribute::kSIDRREQ;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kPrivateDataSize = 216;  // bytes
  CommId request_id{};
  PKey p_key{0xffff};
  ServiceId service_id{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<SIDRREQ> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const SIDRREQ&, const SIDRREQ&) = default;
};

}  // namespace verbena::cm
