// APR: Alternate Path Response, the answer to a LAP. IBTA Vol 1, 12.8.2, table 116.
// Network order; behind the MAD header.
//   |                    Local Communication ID                     |   0
//   |                    Remote Communication ID                    |   4
//   |    InfoLen    |   AR Status   |           reserved            |   8
//   |             Additional Information (72 bytes)                 |  12
//   |                    Private Data (148 bytes)                   |  84
// Invariant: decode(encode(a)) == a. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/types.h"
#include "wire/ib/cm/attribute.h"
#include "wire/ib/cm/fields.h"
#include "wire/ib/cm/ids.h"

namespace verbena::cm {

enum class APRStatus : u8 {  // 12.8.2.1
  kLoaded = 0,
  kInvalidCommunicationID = 1,
  kNotSupported = 2,  // alternate paths are not supported
  kRejected = 3,
};

struct APR {
  static constexpr Attribute kAttribute = Attribute::kAPR;
  static constexpr std::size_t kSize = kMessageSize;
  static constexpr std::size_t kInfoSize = 72;          // bytes
  static constexpr std::size_t kPrivateDataSize = 148;  // bytes
  CommId local_comm_id{}, remote_comm_id{};
  u8 info_length = 0;
  APRStatus status = APRStatus::kLoaded;  // any 8 bits when received
  std::array<u8, kInfoSize> info{};
  std::array<u8, kPrivateDataSize> private_data{};
  [[nodiscard]] static std::optional<APR> decode(std::span<const u8> in);  // nullopt: short
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const APR&, const APR&) = default;
};

}  // namespace verbena::cm
