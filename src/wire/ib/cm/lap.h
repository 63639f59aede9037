// LAP: Load Alternate Path. IBTA Vol 1, 12.8.1, table 115. Network order; behind the MAD header.
//   |                    Local Communication ID                     |   0
//   |                    Remote Communication ID                    |   4
//   |                           reserved                            |   8
//   |                Remote QPN/EECN                |RCMTmo(5)|rsvd |  12
//   |                           reserved                            |  16
//   |      Local Port LID           |       Remote Port LID         |  20
//   |                     Local Port GID (128)                      |  24
//   |                     Remote Port GID (128)                     |  40
//   |             Flow Label (20)           | rsvd  | Traffic Class |  56
//   |   Hop Limit   |rs|Packet Rate |  SL  |S| rsvd  |AckTmo(5)|rsvd|  60
//   |                    Private Data (168 bytes)                   |  64
// The alternate path's fields are those of a REQ's Path, in other places.
// Invariant: decode(encode(l)) == l. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/cm/fields.h"
#include "wire/ib/cm/ids.h"
#include "wire/ib/cm/path.h"

namespace verbena::cm {

struct LAP {
  static constexpr Attribute kAttribute = Attribute::kLAP;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kPrivateDataSize = 168;  // bytes
  CommId local_comm_id{}, remote_comm_id{};
  QPN remote_qpn{};
  u8 remote_cm_response_timeout = 0;  // 5 bits
  Path alternate{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<LAP> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const LAP&, const LAP&) = default;
};

}  // namespace verbena::cm
