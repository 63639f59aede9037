// The bytes of a TCP stream that an RDMA WRITE takes in iWARP, with the headers of MPA, DDP and
// RDMAP. RFC 5044, 4 and 5.1; RFC 5041, 4.1 and 4.2; RFC 7306, 6 (immediate data). Without markers,
// with CRCs.
//
//   FPDU      | length (2) | ULPDU: DDP header, payload | pad to 4 | CRC (4) |
//   tagged    | control (2) | STag (4) | TO (8) |                      RDMA WRITE
//   untagged  | control (2) | ULP (4) | QN (4) | MSN (4) | MO (4) |    the others
#pragma once

#include "base/types.h"

namespace verbena::iwarp {

inline constexpr u32 kMPALengthBytes = 2;
inline constexpr u32 kMPAOverhead = kMPALengthBytes + 4;  // and the CRC
inline constexpr u32 kTaggedHeader = 14, kUntaggedHeader = 18;
inline constexpr u32 kImmediateDataBytes = 8;  // RFC 7306, 6.1

// Returns the size of an FPDU with so many bytes of ULPDU.
[[nodiscard]] constexpr u32 fpdu_bytes(u32 ulpdu) { return (2 + ulpdu + 3) / 4 * 4 + 4; }
// Returns the longest ULPDU whose FPDU fits a segment. RFC 5044, 5.1: MULPDU = EMSS - (6 + EMSS mod
// 4).
[[nodiscard]] constexpr u32 longest_ulpdu(u32 mss) { return mss - (kMPAOverhead + mss % 4); }

// Returns the bytes of a message by RDMA WRITE, as FPDUs for segments of `mss`. Precondition: mss
// >= 32.
[[nodiscard]] constexpr u64 write_bytes(u64 message, u32 mss) {
  const u64 payload = longest_ulpdu(mss) - kTaggedHeader;
  const u64 full = message / payload;
  const u32 rest = static_cast<u32>(message % payload);
  u64 bytes = full * fpdu_bytes(longest_ulpdu(mss));
  if (rest != 0 || message == 0) bytes += fpdu_bytes(kTaggedHeader + rest);
  return bytes;
}

// The message that notifies the receiver's program, behind the WRITE.
inline constexpr u32 kImmediateBytes = fpdu_bytes(kUntaggedHeader + kImmediateDataBytes);

}  // namespace verbena::iwarp
