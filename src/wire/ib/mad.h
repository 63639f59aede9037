// MADHeader: the common header of every management datagram. IBTA Vol 1, 13.4.3.
// Network order. A MAD is 256 bytes: this header, then 232 bytes whose layout its class defines.
//    0                8               16                              31
//   |  BaseVersion  |   MgmtClass   | ClassVersion  |R|   Method    |
//   |            Status             |         ClassSpecific         |
//   |                     TransactionID (64)                        |
//   |          AttributeID          |           Reserved            |
//   |                      AttributeModifier                        |
// Invariant: decode(encode(h)) == h. Reserved bits: sent as 0, ignored on receipt.
#pragma once

#include <optional>
#include <span>

#include "base/types.h"

namespace verbena {

inline constexpr std::size_t kMADSize = 256;  // bytes

enum class MgmtClass : u8 {  // 13.4.4; those that this project uses
  kSubnLIDRouted = 0x01,
  kSubnAdm = 0x03,
  kPerf = 0x04,
  kComMgt = 0x07,
  kSubnDirectedRoute = 0x81,
};

enum class MADMethod : u8 {  // 13.4.5
  kGet = 0x01,
  kSet = 0x02,
  kSend = 0x03,
  kTrap = 0x05,
  kReport = 0x06,
  kTrapRepress = 0x07,
  kGetResp = 0x81,
  kReportResp = 0x86,
};

struct MADHeader {
  static constexpr std::size_t kSize = 24;  // bytes
  static constexpr u8 kBaseVersion = 1;
  MgmtClass mgmt_class{};
  u8 class_version = 0;
  MADMethod method{};  // R is its top bit
  u16 status = 0;
  u16 class_specific = 0;
  u64 transaction_id = 0;
  u16 attribute_id = 0;
  u32 attribute_modifier = 0;
  // Returns nullopt on a short buffer or another base version. Classes and methods not named above
  // keep their value.
  [[nodiscard]] static std::optional<MADHeader> decode(std::span<const u8> in);
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const MADHeader&, const MADHeader&) = default;
};

}  // namespace verbena
