// A TCP segment in a simulated frame's headers. Not as on the wire: what simulated hosts need of
// it, in 32 bytes. (results/frame_capture.cc writes real headers.) Big-endian:
//    0      flags: SYN, ACK, PSH, ECE, CWR, D-SACK, number of SACK blocks (2 bits)
//    1, 4   upper two bits of each of the six numbers below
//    2..3   window, in units of 1 KiB (a scale of 10: RFC 7323, 2)
//    5..7   the receiver's end of the connection; where switches look for a QPN (spreading.h)
//    8..13  sequence number, or the one that is acknowledged
//   14..17  of bytes: the word of the message that ends with them
//   14..31  of an acknowledgement: SACK blocks, from there: beginnings and lengths, 24 bits each
#pragma once

#include "fabric/frame.h"
#include "transport/tcp/segment.h"

namespace verbena::fabric {

inline constexpr u32 kWindowScale = 10;
inline constexpr u32 kMostEnds = 1u << 24;  // of connections, at one host

// Sets headers, header_bytes, payload_bytes and the ECN bits; not addresses and size.
void put_segment(const tcp::Segment& segment, u32 end, Frame& frame);
[[nodiscard]] tcp::Segment segment_of(const Frame& frame);
[[nodiscard]] u32 end_of(const Frame& frame);

// Bytes of TCP options: timestamps (RFC 7323, 3.2) and SACK blocks (RFC 2018, 3), each with the
// NOPs that align it.
inline constexpr u32 kTimestampBytes = 12;
[[nodiscard]] constexpr u32 option_bytes(const tcp::Segment& segment) {
  const u32 blocks = segment.block_count + (segment.duplicate ? 1 : 0);
  return kTimestampBytes + (blocks != 0 ? 4 + 8 * blocks : 0);
}

}  // namespace verbena::fabric
