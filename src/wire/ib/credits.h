// End-to-end credits: the 5-bit code in an ACK's AETH and the count of WQEs that it grants. IBTA
// Vol 1, 9.7.7.2, table 44. Code 31 (kNoCredits) means that the responder uses no credits: then the
// requester is not limited.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "base/types.h"
#include "wire/ib/aeth.h"

namespace verbena {

inline constexpr u32 kUnlimitedCredits = 0xffffffff;  // the meaning of code 31 for a requester

inline constexpr std::array<u32, 32> kCreditCounts = {
    0,    1,    2,    3,     4,     6,     8,     12,
    16,   24,   32,   48,    64,    96,    128,   192,
    256,  384,  512,  768,   1024,  1536,  2048,  3072,
    4096, 6144, 8192, 12288, 16384, 24576, 32768, kUnlimitedCredits};

// Only the low 5 bits of `code` count.
constexpr u32 credits_from_code(u8 code) { return kCreditCounts[code & 0x1f]; }

// Returns the largest code whose count is not above `credits`. Never kNoCredits, which is a choice
// of the responder and not a count.
constexpr u8 code_from_credits(u32 credits) {
  if (credits < 2) return static_cast<u8>(credits);
  // Each power of two has two codes: for itself, and for half as much again.
  const u32 power = static_cast<u32>(std::bit_width(credits)) - 1;
  return static_cast<u8>(std::min(2 * power + (credits >> (power - 1) & 1), kNoCredits - 1u));
}

}  // namespace verbena
