// Times that CM messages carry as 5-bit codes: 4.096 us * 2^code. IBTA Vol 1, 12.7.4, 12.7.5. The
// peer chooses the code in a message; kMin and kMax keep it from flooding this side or from holding
// a table entry for hours.
#pragma once

#include <algorithm>

#include "base/time.h"
#include "base/types.h"

namespace verbena {

inline constexpr u8 kMaxTimeoutField = 31;  // the largest value of 5 bits
inline constexpr u8 kMinTimeoutCode = 8;    // 1.05 ms
inline constexpr u8 kMaxTimeoutCode = 24;   // 68.7 s; the value of Linux's rdma_cm in an MRA

constexpr Duration cm_timeout(u8 code) {
  return ns(4096) * (i64{1} << std::clamp(code, kMinTimeoutCode, kMaxTimeoutCode));
}

// Returns how long to wait for the answer to a message: out, handled, back. 12.9.8.
constexpr Duration cm_response_time(u8 response_timeout_code, u8 packet_life_time_code) {
  return cm_timeout(response_timeout_code) + cm_timeout(packet_life_time_code) * 2;
}

// The Local ACK Timeout of a path: 2 * life time + the responder's delay, as a code. 12.7.34.
// Codes add as Linux's cm.c adds them: the larger, and one more if the other is within half of it.
constexpr u8 ack_timeout_code(u8 ca_ack_delay_code, u8 packet_life_time_code) {
  const int round_trip = packet_life_time_code + 1;
  const int larger = std::max<int>(round_trip, ca_ack_delay_code);
  const int smaller = std::min<int>(round_trip, ca_ack_delay_code);
  return static_cast<u8>(std::min(larger + (larger - smaller <= 1 ? 1 : 0), int{kMaxTimeoutField}));
}

}  // namespace verbena
