// MRA: Message Receipt Acknowledgment: the sender has the message and needs time. IBTA Vol 1,
// 12.6.6, table 107.
// Network order; behind the MAD header.
//   |                    Local Communication ID                     |   0
//   |                    Remote Communication ID                    |   4
//   |M(2)|   rsvd   |SvcTmo(5)|rsvd |  Private Data (222 bytes)         8
// M: Message MRAed. SvcTmo: Service Timeout, 4.096 us * 2^n from the receipt of this message.
// Invariant: decode(encode(m)) == m. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/answered.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/cm/fields.h"
#include "wire/ib/cm/ids.h"

namespace verbena::cm {

struct MRA {
  static constexpr Attribute kAttribute = Attribute::kMRA;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kPrivateDataSize = 222;  // bytes
  CommId local_comm_id{}, remote_comm_id{};
  Answered message_mraed = Answered::kREQ;
  u8 service_timeout = 0;  // 5 bits
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<MRA> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const MRA&, const MRA&) = default;
};

}  // namespace verbena::cm
