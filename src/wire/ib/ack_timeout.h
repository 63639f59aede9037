// Local ACK Timeout: a QP attribute of 5 bits; the requester's time-out is 4.096 us * 2^code.
// IBTA Vol 1, 9.9.2.1.3.1. Longest: code 31, 2.4 hours.
#pragma once

#include <optional>

#include "base/time.h"
#include "base/types.h"

namespace verbena {

// Only the low 5 bits of `code` count. Returns nullopt for code 0: the timeout is disabled
// (infinite).
constexpr std::optional<Duration> ack_timeout(u8 code) {
  const u8 exponent = code & 0x1f;
  if (exponent == 0) return std::nullopt;
  return ns(4096) * (i64{1} << exponent);
}

}  // namespace verbena
