// Segment: a message between the ends of a TCP connection, without its bytes. Sequence numbers
// count the stream's bytes from 0 and do not wrap (RFC 9293, 3.4 has 32 bits of them); SYN and FIN
// take none here. A connection is used one way: segments have bytes, or acknowledge.
#pragma once

#include <array>

#include "base/types.h"
#include "wire/eth/ecn.h"

namespace verbena::tcp {

struct SACKBlock {
  u64 begin = 0, end = 0;  // bytes received, end excluded
  friend bool operator==(const SACKBlock&, const SACKBlock&) = default;
};

struct Segment {
  static constexpr u32 kMostBlocks = 3;  // beside timestamps. RFC 2018, 3

  u64 sequence = 0;  // of the first byte
  u32 bytes = 0;
  u64 acknowledgement = 0;  // bytes received without a gap, if `ack`
  u64 window = 0;           // bytes that the receiver has room for, behind `acknowledgement`
  bool syn = false, ack = false;
  bool push = false;  // ends a message; its word is in the segment, as data of the program
  bool ece = false, cwr = false;
  bool duplicate = false;  // the acknowledged segment had been received before: D-SACK, RFC 2883
  ECN ecn = ECN::kNotECT;  // of its IP header
  u32 word = 0;
  u32 block_count = 0;
  std::array<SACKBlock, kMostBlocks> blocks{};
};

}  // namespace verbena::tcp
