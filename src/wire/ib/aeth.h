// AETH: ACK Extended Transport Header. IBTA Vol 1, 9.3.5, tables 44-47. Network order.
//   | Syndrome (8) | MSN (24) |
// Syndrome: bit 7 zero; bits 6:5 kind; bits 4:0 credit code (ACK), RNR timer (RNR NAK) or NAK code.
#pragma once

#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/check.h"
#include "base/psn.h"
#include "base/types.h"

namespace verbena {

enum class AETHKind : u8 { kACK = 0, kRNRNAK = 1, kReserved = 2, kNAK = 3 };

enum class NAKCode : u8 {  // table 46
  kPSNSequenceError = 0,
  kInvalidRequest = 1,
  kRemoteAccessError = 2,
  kRemoteOperationalError = 3,
  kInvalidRDRequest = 4,
};

inline constexpr u8 kNoCredits = 31;  // "invalid credit count": end-to-end flow control unused

struct AETH {
  static constexpr std::size_t kSize = 4;  // bytes
  AETHKind kind = AETHKind::kACK;
  u8 value = kNoCredits;  // 5 bits: credit code, RNR timer code, or NAKCode
  MSN msn{};
  [[nodiscard]] static std::optional<AETH> decode(std::span<const u8> in);  // nullopt: short, bit 7
  void encode(std::span<u8, kSize> out) const;
  friend bool operator==(const AETH&, const AETH&) = default;
};

inline std::optional<AETH> AETH::decode(std::span<const u8> in) {
  if (in.size() < kSize) return std::nullopt;
  const u32 word = Reader<kSize>(in.first<kSize>()).get32<0>();
  if (word >> 31 != 0) return std::nullopt;
  return AETH{.kind = static_cast<AETHKind>(word >> 29),
              .value = static_cast<u8>(word >> 24 & 0x1f),
              .msn = MSN{word}};
}

inline void AETH::encode(std::span<u8, kSize> out) const {
  CHECK(value <= 0x1f);
  Writer<kSize>(out).put32<0>(static_cast<u32>(kind) << 29 | u32{value} << 24 | msn.value());
}

}  // namespace verbena
