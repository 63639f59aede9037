// RMPPHeader: of a MAD that is one segment of a message, or says what came of such. It lies behind
// the common header. IBTA Vol 1, 13.6.2. Network order.
//    0                8               16                              31
//   |  RMPPVersion  |   RMPPType    |RRespTime|Flags|   RMPPStatus  |
//   |  Data1: SegmentNumber                                         |
//   |  Data2: PayloadLength of DATA, NewWindowLast of ACK           |
// Invariant: decode(encode(h)) == h.
#pragma once

#include <span>

#include "base/bytes.h"
#include "wire/ib/mad.h"

namespace verbena::management {

enum class RMPPType : u8 { kData = 1, kACK = 2, kStop = 3, kAbort = 4 };  // others: ignored

enum class RMPPStatus : u8 {  // 13.6.2.3
  kNormal = 0,
  kResourcesExhausted = 1,  // of STOP
  kInconsistentPayloadLength = 119,
  kInconsistentSegmentNumber = 120,
  kWindowTooSmall = 122,
  kUnsupportedVersion = 125,
  kTooManyRetries = 126,
};

struct RMPPHeader {
  static constexpr std::size_t kAt = MADHeader::kSize, kSize = 12;  // bytes
  static constexpr u8 kVersion = 1;
  static constexpr u8 kActive = 1, kFirst = 2, kLast = 4;  // flags
  static constexpr u8 kNoResponseTime = 31;

  u8 version = kVersion;
  RMPPType type = RMPPType::kData;
  u8 response_time = kNoResponseTime;
  u8 flags = kActive;
  RMPPStatus status = RMPPStatus::kNormal;
  u32 segment = 0;
  u32 length = 0;  // or the last segment of the window

  [[nodiscard]] static RMPPHeader decode(std::span<const u8> mad) {
    const u8* const in = mad.subspan(kAt, kSize).data();
    return {.version = in[0],
            .type = static_cast<RMPPType>(in[1]),
            .response_time = static_cast<u8>(in[2] >> 3),
            .flags = static_cast<u8>(in[2] & 7),
            .status = static_cast<RMPPStatus>(in[3]),
            .segment = load_be32(in + 4),
            .length = load_be32(in + 8)};
  }
  void encode(std::span<u8> mad) const {
    u8* const out = mad.subspan(kAt, kSize).data();
    out[0] = version;
    out[1] = static_cast<u8>(type);
    out[2] = static_cast<u8>(response_time << 3 | flags);
    out[3] = static_cast<u8>(status);
    store_be32(out + 4, segment);
    store_be32(out + 8, length);
  }
  friend bool operator==(const RMPPHeader&, const RMPPHeader&) = default;
};

}  // namespace verbena::management
