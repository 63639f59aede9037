// REJ: Reject: no connection, or no longer one. IBTA Vol 1, 12.6.7, table 108.
// Network order; behind the MAD header.
//   |                    Local Communication ID                     |   0
//   |                    Remote Communication ID                    |   4
//   |M(2)|   rsvd   | InfoLen (7) |r|            Reason             |   8
//   |         Additional Reject Information, ARI (72 bytes)         |  12
//   |                    Private Data (148 bytes)                   |  84
// M: Message REJected. InfoLen: number of meaningful bytes of the ARI.
// Invariant: decode(encode(r)) == r. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/answered.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/cm/fields.h"
#include "wire/ib/cm/ids.h"
#include "wire/ib/cm/reject_reason.h"

namespace verbena::cm {

struct REJ {
  static constexpr Attribute kAttribute = Attribute::kREJ;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kARISize = 72;           // bytes
  static constexpr std::size_t kPrivateDataSize = 148;  // bytes
  CommId local_comm_id{}, remote_comm_id{};
  Answered message_rejected = Answered::kREQ;
  u8 reject_info_length = 0;  // 7 bits; may exceed kARISize when received
  RejectReason reason{};      // any 16 bits when received
  std::array<u8, kARISize> ari{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<REJ> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const REJ&, const REJ&) = default;
};

}  // namespace verbena::cm
